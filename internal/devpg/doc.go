// Package devpg runs a private Postgres for `engined dev` and for tests, so
// that a clone works with nothing but server binaries on the machine.
//
// One [Cluster] owns one directory, laid out as
//
//	DIR/pgdata        the Postgres data directory, mode 0700
//	DIR/postgres.log  what the server said
//
// and listens on a Unix socket only, in a directory of mode 0700 under the
// temporary directory (socket paths are limited to about 107 bytes, data
// directories are not). Whoever may enter that directory is trusted.
//
// The rules, each learned from a bug of somebody's dev mode:
//
//   - A directory this package did not lay out is refused, never wiped; so is
//     a data directory of another major version.
//   - A new cluster appears by one rename, so a killed initdb leaves nothing
//     that looks like a cluster.
//   - The directory is locked (flock) for as long as the cluster runs. A second
//     start fails with [ErrInUse].
//   - A pid file is believed only if its process is a Postgres server on this
//     very directory. A server whose engined was killed is shut down cleanly
//     and started anew, so the same data is served.
//   - Run as root, the server runs as user postgres, else nobody: Postgres
//     refuses uid 0.
//   - On Linux the server is told to shut down when its parent dies.
//
// The package needs a Unix system.
package devpg
