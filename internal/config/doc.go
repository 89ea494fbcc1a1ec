// Package config declares every setting of engined once.
//
// One entry of the table in table.go yields a command's flag, its variable in
// the environment (ENGINED_…), its key in engined.yaml and its row in
// docs/configuration.md, so the four cannot drift apart. Where several say
// something, the flag wins over the environment, the environment over the
// file, the file over the default.
//
// A key of the file that is not in the table is an error: a setting that is
// silently ignored is worse than a program that does not start.
package config
