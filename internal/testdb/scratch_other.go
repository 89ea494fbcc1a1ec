//go:build !linux

package testdb

import "os"

// scratch is where clusters live.
func scratch() string { return os.TempDir() }
