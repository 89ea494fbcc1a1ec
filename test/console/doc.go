// Package console clicks through the web console in a real browser, against a
// fresh `engined dev`. It is a module of its own, so that the service does not
// depend on what drives a browser. Run it with `make console-check`.
package console
