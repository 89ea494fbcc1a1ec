// Package faults breaks a running engined and holds what is left against what
// clients were promised. Its tests run the real program as several processes
// on loopback, kill, stop and starve them under load, and audit the log
// afterwards. docs/faults.md lists the faults and what they found.
package faults
