// Package access decides who a request comes from and what it may do: API keys
// and their scopes, and the limits of a tenant.
//
// A key is shown once, when it is made; what is kept is a hash. A node believes
// what it has read of a key for a short time, so a revocation counts on every
// node no later than that time after it was made.
package access
