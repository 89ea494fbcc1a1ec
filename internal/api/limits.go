package api

// Limits bound what a request may hold. A zero field means the default.
type Limits struct {
	// MessageBytes is the largest message; 8 MiB.
	MessageBytes int64 `json:"messageBytes"`
	// BatchBytes is the largest request body; 64 MiB.
	BatchBytes int64 `json:"batchBytes"`
	// BatchMessages is the most messages of one request; 10,000.
	BatchMessages int `json:"batchMessages"`
	// Nesting is how deep a message's JSON may be; 512. The engine enforces it.
	Nesting int `json:"nesting"`
	// KeyBytes is the longest session, idempotency or advancement key and host
	// session id, in bytes of UTF-8; 512.
	KeyBytes int `json:"keyBytes"`
	// Page is the most rows of a page; 500. A larger limit is clamped to it.
	Page int `json:"page"`
	// Streams is how many streams a tenant may hold open on a node; 256.
	Streams int `json:"streams"`
}

func (l Limits) withDefaults() Limits {
	setDefault(&l.MessageBytes, 8<<20)
	setDefault(&l.BatchBytes, 64<<20)
	setDefault(&l.BatchMessages, 10_000)
	setDefault(&l.Nesting, 512)
	setDefault(&l.KeyBytes, 512)
	setDefault(&l.Page, 500)
	setDefault(&l.Streams, 256)
	return l
}

const (
	// envelopeBytes is what a body may hold beside its messages.
	envelopeBytes = 64 << 10
	// maxTokens is the largest number of tokens that makes sense; it keeps sums
	// and the columns they are stored in from overflowing.
	maxTokens = 1<<31 - 1
	// defaultPage is a page's rows when the request does not say.
	defaultPage = 100
	// pageBytes ends a page early, so that 500 messages of 8 MiB are many pages.
	pageBytes = 32 << 20
	// chunkRows and chunkBytes are how much is read at a time; a chunk may
	// pass the latter by one message.
	chunkRows  = 64
	chunkBytes = 4 << 20
)
