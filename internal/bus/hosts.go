package bus

import (
	"net/url"
	"strings"
)

// Hosts are the servers of a setting, without what may be secret.
func Hosts(setting string) string {
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
