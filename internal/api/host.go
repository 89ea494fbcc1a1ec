package api

import (
	"net"
	"net/http"
	"strings"
)

// checkHost holds a request to the names by which a node without keys is
// reached on its own machine. A page of another site whose name was made to
// resolve to this machine would otherwise be of the same origin as the node.
func (a *API) checkHost(r *http.Request) error {
	if !a.cfg.Local || r.Host == "" || isLoopback(hostname(r.Host)) {
		return nil
	}
	for _, name := range a.cfg.LocalNames {
		if strings.EqualFold(hostname(r.Host), name) {
			return nil
		}
	}
	return kindForbidden.problem("a node without keys answers only to localhost, 127.0.0.1 and [::1], not to the host " +
		quote(r.Host) + "; set keys to serve other names").field("Host")
}

// hostname is a Host header without its port and brackets.
func hostname(hostport string) string {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	return strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), ".")
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
