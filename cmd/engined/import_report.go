package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/engined/engined/internal/transcript"
)

// fileReport is what became of one file.
type fileReport struct {
	File         string          `json:"file"`
	Format       string          `json:"format"`
	Sessions     []sessionReport `json:"sessions"`
	New          int             `json:"new"`
	AlreadyThere int             `json:"alreadyThere"`
	Broken       []brokenLine    `json:"broken"`
	Skipped      map[string]int  `json:"skipped"`
	// Replayed counts what changed what a session shows: resets and leaf moves.
	Replayed map[string]int `json:"replayed"`
	Error    string         `json:"error,omitempty"`

	err error
}

// sessionReport is what one session got from a file.
type sessionReport struct {
	SessionKey   string `json:"sessionKey"`
	New          int    `json:"new"`
	AlreadyThere int    `json:"alreadyThere"`
	Head         int64  `json:"head"`
}

// brokenLine is a line that was not imported.
type brokenLine struct {
	Line   int    `json:"line"`
	Reason string `json:"reason"`
}

func newFileReport(path string) *fileReport {
	return &fileReport{File: path, Sessions: []sessionReport{}, Broken: []brokenLine{}, Skipped: map[string]int{}, Replayed: map[string]int{}}
}

// add takes over what the reader says.
func (r *fileReport) add(read transcript.Report) {
	r.Format = string(read.Format)
	maps.Copy(r.Skipped, read.Skipped)
	for kind := range r.Replayed {
		delete(r.Skipped, kind)
	}
	for _, b := range read.Broken {
		r.refuse(b.Line, b.Reason)
	}
}

// failure is the error of a file, and names it once: many errors do already.
func (r *fileReport) failure() error {
	if strings.Contains(r.err.Error(), r.File) {
		return r.err
	}
	return fmt.Errorf("%s: %w", r.File, r.err)
}

// empty tells that a file failed before anything became of it.
func (r *fileReport) empty() bool {
	return r.err != nil && r.New+r.AlreadyThere+len(r.Broken)+len(r.Skipped) == 0
}

func (r *fileReport) refuse(line int, reason string) {
	r.Broken = append(r.Broken, brokenLine{line, reason})
}

// replay counts a record that moves or cuts what a session shows.
func (r *fileReport) replay(kind string) {
	if kind == "reset" || kind == "leaf" {
		r.Replayed[kind]++
	}
}

// took counts n messages that the node took, and how many of them were new.
func (r *fileReport) took(session string, n, added int, head int64) {
	i := slices.IndexFunc(r.Sessions, func(s sessionReport) bool { return s.SessionKey == session })
	if i < 0 {
		i = len(r.Sessions)
		r.Sessions = append(r.Sessions, sessionReport{SessionKey: session})
	}
	s := &r.Sessions[i]
	s.New += added
	s.AlreadyThere += n - added
	s.Head = head
	r.New += added
	r.AlreadyThere += n - added
}

// brokenShown is how many broken lines of a file people get to see.
const brokenShown = 20

func (c *cli) printImport(reports []*fileReport, asJSON bool) error {
	for _, r := range reports {
		slices.SortStableFunc(r.Broken, func(a, b brokenLine) int { return a.Line - b.Line })
		if r.err != nil {
			r.Error = r.err.Error()
		}
	}
	if asJSON {
		return printJSON(c.out, map[string]any{"files": reports})
	}
	t := newTable(c.out, left("FILE"), left("SESSION"), right("NEW"), right("ALREADY THERE"), right("BROKEN"), left("SKIPPED"))
	rows := 0
	for _, r := range reports {
		if r.empty() {
			continue // its error says all
		}
		rows++
		t.row(oneLine(shortPath(r.File, 48), 0), r.sessionText(), thousands(r.New), thousands(r.AlreadyThere), thousands(len(r.Broken)), r.skippedText())
	}
	if rows == 0 {
		return nil
	}
	if err := t.flush(); err != nil {
		return err
	}
	for _, r := range reports {
		for i, b := range r.Broken {
			if i == brokenShown {
				fmt.Fprintf(c.out, "%s: and %s more; --json lists all\n", oneLine(r.File, 0), thousands(len(r.Broken)-i))
				break
			}
			fmt.Fprintf(c.out, "%s:%d: %s\n", oneLine(r.File, 0), b.Line, oneLine(b.Reason, 200))
		}
	}
	return nil
}

// shortPath is the end of a long path.
func shortPath(path string, atMost int) string {
	if r := []rune(path); len(r) > atMost {
		return "…" + string(r[len(r)-atMost+1:])
	}
	return path
}

func (r *fileReport) sessionText() string {
	switch len(r.Sessions) {
	case 0:
		return "-"
	case 1:
		return oneLine(r.Sessions[0].SessionKey, 60)
	}
	return oneLine(r.Sessions[0].SessionKey, 60) + fmt.Sprintf(" and %d more", len(r.Sessions)-1)
}

func (r *fileReport) skippedText() string {
	if len(r.Skipped) == 0 {
		return "-"
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(r.Skipped)) {
		parts = append(parts, fmt.Sprintf("%d %s", r.Skipped[kind], oneLine(kind, 40)))
	}
	return strings.Join(parts, ", ")
}
