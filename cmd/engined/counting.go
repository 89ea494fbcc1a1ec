package main

import (
	"fmt"
	"io"
	"time"
)

// counting shows on a terminal how far a work of many equal steps has come;
// elsewhere it says nothing.
type counting struct {
	w        io.Writer
	terminal bool
	now      func() time.Time
	what     string
	drawn    time.Time
}

func (c *cli) counting(what string) *counting {
	return &counting{w: c.err, terminal: terminalWidth(c.err) > 0, now: c.now, what: what}
}

// at tells that n steps are done.
func (n *counting) at(done, of int) {
	if now := n.now(); n.terminal && now.Sub(n.drawn) >= redrawEvery {
		n.drawn = now
		fmt.Fprintf(n.w, "\r\x1b[K%s of %s %s", thousands(done), thousands(of), n.what)
	}
}

// end takes the line away.
func (n *counting) end() {
	if !n.drawn.IsZero() {
		fmt.Fprint(n.w, "\r\x1b[K")
	}
}
