package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// printRaw prints an answer as the node wrote it.
func printRaw(w io.Writer, raw json.RawMessage) error {
	_, err := fmt.Fprintf(w, "%s\n", bytes.TrimRight(raw, "\n"))
	return err
}

// printJSON prints a value of our own.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// rowWriter prints the rows of a listing as one page of the wire, each row on
// a line of its own and byte for byte as the node sent it.
type rowWriter struct {
	w    io.Writer
	name string
	n    int
}

func (r *rowWriter) row(raw json.RawMessage) error {
	before := ",\n"
	if r.n == 0 {
		before = fmt.Sprintf("{%q:[\n", r.name)
	}
	r.n++
	_, err := fmt.Fprintf(r.w, "%s%s", before, raw)
	return err
}

// end closes the page; next is where the listing goes on, "" at its end.
func (r *rowWriter) end(next string) error {
	if r.n == 0 {
		if _, err := fmt.Fprintf(r.w, "{%q:[", r.name); err != nil {
			return err
		}
	}
	cursor := []byte("null")
	if next != "" {
		cursor, _ = json.Marshal(next) // a string always marshals
	}
	_, err := fmt.Fprintf(r.w, "\n],\"next\":%s}\n", cursor)
	return err
}
