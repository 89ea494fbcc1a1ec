package main

import (
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// column is a column of a table. The last one is never padded.
type column struct {
	title string
	right bool
}

func left(title string) column  { return column{title: title} }
func right(title string) column { return column{title: title, right: true} }

// table aligns rows for people. Rows are held until flush, which may be called
// after each page: columns only grow.
type table struct {
	w       io.Writer
	columns []column
	widths  []int
	rows    [][]string
	begun   bool
}

func newTable(w io.Writer, columns ...column) *table {
	t := &table{w: w, columns: columns, widths: make([]int, len(columns))}
	for i, c := range columns {
		t.widths[i] = len(c.title)
	}
	return t
}

// row adds one row, a cell for each column.
func (t *table) row(cells ...string) {
	for i, cell := range cells {
		t.widths[i] = max(t.widths[i], columns(cell))
	}
	t.rows = append(t.rows, cells)
}

// flush writes what is held.
func (t *table) flush() error {
	var b strings.Builder
	if !t.begun {
		titles := make([]string, len(t.columns))
		for i, c := range t.columns {
			titles[i] = c.title
		}
		t.line(&b, titles)
		t.begun = true
	}
	for _, cells := range t.rows {
		t.line(&b, cells)
	}
	t.rows = t.rows[:0]
	_, err := io.WriteString(t.w, b.String())
	return err
}

func (t *table) line(b *strings.Builder, cells []string) {
	var line strings.Builder
	for i, cell := range cells {
		pad := strings.Repeat(" ", max(0, t.widths[i]-columns(cell)))
		switch {
		case t.columns[i].right:
			line.WriteString(pad + cell)
		case i == len(cells)-1:
			line.WriteString(cell)
		default:
			line.WriteString(cell + pad)
		}
		if i < len(cells)-1 {
			line.WriteString("  ")
		}
	}
	b.WriteString(strings.TrimRight(line.String(), " "))
	b.WriteByte('\n')
}

// room is how many columns are left for the last cell when the others take
// used. What is not a terminal gets lines of a fixed length.
func room(w io.Writer, used int) int {
	width := 160
	if n := terminalWidth(w); n > 0 {
		width = n
	}
	return max(20, width-used)
}

// terminalWidth is 0 for what is not a terminal.
func terminalWidth(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	if size.Col == 0 {
		return 80
	}
	return int(size.Col)
}
