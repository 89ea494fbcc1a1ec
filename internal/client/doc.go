// Package client speaks the HTTP API for the commands of engined.
//
// It keeps two things that a plain use of encoding/json would lose: messages
// go out and come in byte for byte, and every answer keeps its raw text, so
// that a command can print what the node said and not what this program
// understood of it.
package client
