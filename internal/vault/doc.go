// Package vault encrypts what sessions say, each under a key of its own, so
// that destroying that key makes every copy of the session unreadable, those in
// old backups included.
//
// A session's data key is random. It is kept wrapped by a master key that only
// processes know ([Masters]), in a [KeyStore] that is kept out of the backups of
// the log. What is encrypted begins with a byte that no text begins with, so
// plain and encrypted rows stand beside each other ([IsSealed]).
package vault
