package transcripts_test

import (
	"strings"
	"sync"

	"github.com/tiktoken-go/tokenizer"
)

// counter counts tokens of texts that come again and again.
type counter struct {
	codec tokenizer.Codec
	known sync.Map
}

func newCounter() (*counter, error) {
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	return &counter{codec: codec}, err
}

func (c *counter) text(s string) (int, error) {
	if n, ok := c.known.Load(s); ok {
		return n.(int), nil
	}
	// The tokenizer loses DEL.
	n, err := c.codec.Count(strings.ReplaceAll(s, "\x7f", "?"))
	if err == nil {
		c.known.Store(s, n)
	}
	return n, err
}

// message counts all that a model reads of a message.
func (c *counter) message(m *said) (int, error) {
	sum := 0
	for _, s := range m.visible() {
		n, err := c.text(s)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}
