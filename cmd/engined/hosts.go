package main

import "net/url"

// databaseHost is where a database is, without what may be secret: only of a
// URL with a host, as other forms hide it among the rest.
func databaseHost(setting string) string {
	u, err := url.Parse(setting)
	if err != nil || u.Host == "" {
		return "of the setting database-url"
	}
	return u.Host + u.Path
}
