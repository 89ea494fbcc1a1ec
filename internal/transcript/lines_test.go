package transcript

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLineReader(t *testing.T) {
	t.Parallel()
	text := "short\n" + strings.Repeat("x", 20) + "\n" + strings.Repeat("y", 21) + "\n\n" + strings.Repeat("z", 100) + "\nlast"
	for _, buffer := range []int{16, 64, 4096} {
		lines := &lineReader{r: bufio.NewReaderSize(strings.NewReader(text), buffer), limit: 20}
		var got []string
		for {
			l, err := lines.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(l.number, len(l.text), l.tooLong, l.ended))
		}
		want := []string{"1 5 false true", "2 20 false true", "3 0 true true", "4 0 false true", "5 0 true true", "6 4 false false"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("buffer of %d, lines (-want +got):\n%s", buffer, diff)
		}
	}
}

func TestLineTooLongIsReported(t *testing.T) {
	t.Parallel()
	rd := newReader(func(Entry) error { return errors.New("not to be called") })
	if err := rd.line(line{number: 3, tooLong: true}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Broken{{Line: 3, Reason: "line too long"}}, rd.report.Broken); diff != "" {
		t.Error(diff)
	}
}
