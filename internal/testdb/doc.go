// Package testdb gives every test a database of its own on a real Postgres.
//
// [New] clones a template that was migrated once, so a test pays for a file
// copy and not for the migrations. The template is keyed by the hash of the
// migrations: a changed file makes a new one.
//
// The server is DATABASE_URL where set (its role needs CREATEDB). Otherwise
// the test processes of one run share a private cluster: the first to come
// starts a keeper process, which runs the cluster for as long as any test
// process lives and removes it afterwards. Nothing is left of a run that was
// killed: processes are counted by file locks, which the kernel takes back.
//
// The shared cluster forgoes durability. A writing transaction of one test
// holds back the snapshot horizon of all databases of a cluster; a test that
// measures that, or stops its server, takes a [Cluster] for itself.
package testdb
