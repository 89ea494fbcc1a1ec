package transcript

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Read reads a transcript and hands its entries to fn in the file's order. It
// holds one line at a time, or the whole file where its first line is no record
// of its own (a JSON document, or a torn line).
// An error of fn or of ctx ends it and is returned; so does a file that holds
// no record of any known format (ErrUnknownFormat). Broken places are no
// errors. name is for error texts.
func Read(ctx context.Context, name string, r io.Reader, fn func(Entry) error) (Report, error) {
	rd := newReader(fn)
	err := rd.read(ctx, r)
	if err == nil && rd.report.Format == Unknown {
		err = ErrUnknownFormat
	}
	if err != nil {
		return rd.report, fmt.Errorf("read %s: %w", name, err)
	}
	return rd.report, nil
}

// mark is the byte order mark with which some editors begin UTF-8.
const mark = "\ufeff"

type reader struct {
	fn     func(Entry) error
	report Report
	claude chains
	// derived counts the entries without ids of each session, last is the
	// newest of those ids.
	derived map[string]int
	last    map[string]string
}

func newReader(fn func(Entry) error) *reader {
	return &reader{
		fn:      fn,
		report:  Report{Skipped: map[string]int{}},
		derived: map[string]int{},
		last:    map[string]string{},
	}
}

func (rd *reader) read(ctx context.Context, r io.Reader) error {
	buffered := bufio.NewReaderSize(r, 64<<10)
	if begins, _ := buffered.Peek(len(mark)); string(begins) == mark { // an error comes again with the first line
		_, _ = buffered.Discard(len(mark)) // it is in the buffer
	}
	lines := &lineReader{r: buffered, limit: MaxLine}
	first, err := lines.next()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	if begins := bytes.TrimSpace(first.text); len(begins) > 0 && (begins[0] == '[' || begins[0] == '{') && !first.tooLong {
		whole := json.Valid(begins)
		switch {
		case whole && !first.ended:
			// The only line: a document, or a transcript of one record.
			if ok, err := rd.document(ctx, begins); ok || err != nil {
				return err
			}
			if begins[0] == '[' {
				rd.broken(first.number, noDocument(begins))
				return nil
			}
		case !whole || begins[0] == '[':
			// A document over many lines, or a line that is broken.
			rest, err := io.ReadAll(lines.r)
			if err != nil {
				return err
			}
			all := append(append(append([]byte(nil), first.text...), '\n'), rest...)
			if json.Valid(all) {
				ok, err := rd.document(ctx, all)
				if !ok && err == nil {
					rd.broken(first.number, noDocument(all))
				}
				return err
			}
			lines.r = bufio.NewReader(bytes.NewReader(rest))
		}
	}
	for line := first; ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := rd.line(line); err != nil {
			return err
		}
		line, err = lines.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// emit hands an entry on, with an id if it has none.
func (rd *reader) emit(e Entry) error {
	if e.ID == "" {
		e.ID = rd.derive(&e)
		if e.ParentID == "" {
			e.ParentID = rd.last[e.Session]
		}
		rd.last[e.Session] = e.ID
	}
	if e.Message == nil {
		rd.report.Skipped[e.Kind]++
	} else {
		rd.report.Messages++
	}
	return rd.fn(e)
}

func (rd *reader) broken(line int, reason string) {
	rd.report.Broken = append(rd.report.Broken, Broken{Line: line, Reason: reason})
}

func (rd *reader) is(f Format) {
	if rd.report.Format == Unknown {
		rd.report.Format = f
	}
}
