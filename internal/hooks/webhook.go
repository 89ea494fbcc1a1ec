package hooks

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/engined/engined/internal/engine"
)

// The types of webhooks.
const (
	beforeType = "compaction.before"
	afterType  = "compaction.after"
)

// SignatureHeader holds Sign's text.
const SignatureHeader = "Engined-Signature"

// payload is a webhook's body: ids and numbers, never what was said.
type payload struct {
	Type         string `json:"type"`
	ID           string `json:"id"`
	Tenant       string `json:"tenant"`
	SessionKey   string `json:"sessionKey"`
	SID          string `json:"sid"`
	Head         int64  `json:"head"`
	Epoch        int64  `json:"epoch"`
	Forced       bool   `json:"forced"`
	TokensBefore int    `json:"tokensBefore"`
	TokensAfter  int    `json:"tokensAfter"`
	// Of the hook after a compaction.
	Compacted *bool  `json:"compacted,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Failed    bool   `json:"failed,omitempty"`
}

// Sign is "t=UNIX,v1=HEX": the HMAC-SHA-256 under the secret of the time, a dot and
// the body. Whoever checks it should refuse times that are minutes away.
func Sign(secret string, unix int64, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(strconv.AppendInt(nil, unix, 10))
	mac.Write([]byte{'.'})
	mac.Write(body)
	return fmt.Sprintf("t=%d,v1=%s", unix, hex.EncodeToString(mac.Sum(nil)))
}

// maxAnswer is how much of an answer is read, so that its connection can be used
// again; what it says does not matter.
const maxAnswer = 64 << 10

// post sends one webhook. Any 2xx is success. The URL may hold a password and is
// in no error.
func (h *Hooks) post(ctx context.Context, kind string, e *engine.CompactionEvent) error {
	p := payload{
		Type: kind, ID: e.ID, Tenant: e.Tenant, SessionKey: e.SessionKey, SID: e.SID.String(), Head: e.Head, Epoch: e.Epoch,
		Forced: e.Forced, TokensBefore: e.TokensBefore, TokensAfter: e.TokensAfter,
	}
	if kind == afterType {
		p.Compacted, p.Reason, p.Failed = &e.Compacted, e.Reason, e.Err != nil
	}
	body, err := json.Marshal(p) //nolint:gosec // a session's key is a name
	if err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, h.cfg.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.cfg.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("webhook: the URL is not valid")
	}
	req.Header.Set("Content-Type", "application/json")
	if h.cfg.Secret != "" {
		req.Header.Set(SignatureHeader, Sign(h.cfg.Secret, h.cfg.Now().Unix(), body))
	}
	res, err := h.cfg.Client.Do(req)
	if err != nil {
		if at, ok := errors.AsType[*url.Error](err); ok {
			err = at.Err
		}
		return fmt.Errorf("webhook: %w", err)
	}
	defer res.Body.Close()
	if _, err := io.CopyN(io.Discard, res.Body, maxAnswer); err != nil && ctx.Err() != nil {
		return fmt.Errorf("webhook: %w", ctx.Err())
	}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return fmt.Errorf("webhook: answered %d", res.StatusCode)
	}
	return nil
}
