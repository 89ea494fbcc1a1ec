package main

import (
	"net/url"
	"strings"
)

// natsHosts are the servers of a NATS setting, without what may be secret.
func natsHosts(setting string) string {
	var hosts []string
	for server := range strings.SplitSeq(setting, ",") {
		server = strings.TrimSpace(server)
		if u, err := url.Parse(server); err == nil && u.Host != "" {
			server = u.Host
		} else if at := strings.LastIndexByte(server, '@'); at >= 0 {
			server = server[at+1:]
		}
		hosts = append(hosts, server)
	}
	return strings.Join(hosts, ", ")
}

// databaseHost is where a database is, without what may be secret: only of a
// URL with a host, as other forms hide it among the rest.
func databaseHost(setting string) string {
	u, err := url.Parse(setting)
	if err != nil || u.Host == "" {
		return "of the setting database-url"
	}
	return u.Host + u.Path
}
