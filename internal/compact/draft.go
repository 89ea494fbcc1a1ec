package compact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"

	"github.com/engined/engined/internal/compact/summarize"
)

// Draft is a finished summary that is not committed yet.
type Draft struct {
	Text          string `json:"text"`
	Summarizer    string `json:"summarizer"`
	Model         string `json:"model,omitempty"`
	PromptVersion string `json:"promptVersion,omitempty"`
	// Usage is what the text took to write.
	Usage summarize.Usage `json:"usage,omitzero"`
	// degraded drafts are not kept.
	degraded bool
}

// Drafts keeps the drafts of one session until its compaction is committed. It
// is safe for concurrent use.
type Drafts interface {
	// Get reports false for an unknown key.
	Get(ctx context.Context, key string) (Draft, bool, error)
	Put(ctx context.Context, key string, d Draft) error
}

// draftKey names a request by all that shapes its answer: summarizer, prompt
// version, model, parameters and every line.
func draftKey(s summarize.Summarizer, req summarize.Request) (string, error) {
	h := sha256.New()
	err := json.NewEncoder(h).Encode(struct {
		Summarizer, Version string
		Request             summarize.Request
	}{s.Name(), s.Version(), req})
	return sum(h), err
}

// sourceHash identifies what a summary was made from.
func sourceHash(msgs []SourceMessage) string {
	h := sha256.New()
	e := json.NewEncoder(h)
	for _, m := range msgs {
		_ = e.Encode(m.Seq) // a hash takes everything
		_ = e.Encode(len(m.Body))
		h.Write(m.Body)
	}
	return sum(h)
}

func childrenHash(children []summarize.Child) string {
	h := sha256.New()
	_ = json.NewEncoder(h).Encode(children)
	return sum(h)
}

func sum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }
