package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"
)

// progress shows how an import goes: a bar that is drawn over and over on a
// terminal, else a line now and then.
type progress struct {
	w        io.Writer
	terminal bool
	quiet    bool // says nothing
	now      func() time.Time

	name       string
	size, read int64
	stored     int
	began      time.Time
	drawn      time.Time
	onScreen   bool
}

const (
	barColumns   = 24
	redrawEvery  = 100 * time.Millisecond
	plainEvery   = 5 * time.Second
	progressName = 32
)

func newProgress(w io.Writer, terminal bool, now func() time.Time) *progress {
	return &progress{w: w, terminal: terminal, now: now}
}

// begin starts a file of a size in bytes; 0 is unknown.
func (p *progress) begin(path string, size int64) {
	*p = progress{w: p.w, terminal: p.terminal, quiet: p.quiet, now: p.now, name: oneLine(filepath.Base(path), progressName), size: size}
	p.began = p.now()
	p.drawn = p.began
}

// count is a reader whose bytes are counted.
func (p *progress) count(r io.Reader) io.Reader {
	return counter{r, func(n int) { p.read += int64(n); p.draw() }}
}

// messages tells how many messages the node has of the file.
func (p *progress) messages(n int) {
	p.stored = n
	p.draw()
}

func (p *progress) draw() {
	every := plainEvery
	if p.terminal {
		every = redrawEvery
	}
	now := p.now()
	if p.quiet || now.Sub(p.drawn) < every {
		return
	}
	p.drawn = now
	if p.terminal {
		fmt.Fprintf(p.w, "\r\x1b[K%s", p.line())
		p.onScreen = true
		return
	}
	fmt.Fprintln(p.w, p.line())
}

// line is the state in words, with a bar where the size is known.
func (p *progress) line() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  ", p.name)
	if p.size > 0 {
		part := min(1, float64(p.read)/float64(p.size))
		full := int(part * barColumns)
		fmt.Fprintf(&b, "[%s%s] %3d%%  ", strings.Repeat("█", full), strings.Repeat("·", barColumns-full), int(part*100))
	}
	fmt.Fprintf(&b, "%s  %s", bytesText(p.read), plural(p.stored, "message"))
	if s := p.now().Sub(p.began).Seconds(); s > 0.5 {
		fmt.Fprintf(&b, "  %s/s", thousands(int(float64(p.stored)/s)))
	}
	return b.String()
}

// note says something beside the bar.
func (p *progress) note(text string) {
	p.clear()
	fmt.Fprintln(p.w, oneLine(text, 0))
}

// end leaves one line about the file.
func (p *progress) end(r *fileReport) {
	p.clear()
	if r.err == nil && !p.quiet {
		fmt.Fprintf(p.w, "%s  %s, %s in %s\n", p.name, bytesText(p.read), plural(p.stored, "message"), p.now().Sub(p.began).Round(time.Millisecond))
	}
}

func (p *progress) clear() {
	if p.onScreen {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.onScreen = false
	}
}
