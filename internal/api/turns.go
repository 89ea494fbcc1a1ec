package api

import (
	"unicode/utf8"

	"github.com/engined/engined/contextengine"
)

func turnOperations() []*operation {
	bootstrap := post("/bootstrap", "bootstrap", tagTurns, "Hand over the host's history of a session", serveBootstrap)
	bootstrap.description = "`messages` is the host's whole history; the part that is known already is skipped. Opens the session where it is missing."
	bootstrap.request, bootstrap.answer = of[contextengine.BootstrapParams](), of[contextengine.BootstrapResult]()

	ingest := post("/ingest", "ingest", tagTurns, "Store one message", serveIngest)
	ingest.description = "The message comes back byte for byte. Without an idempotency key every message counts, however equal. Opens the session where it is missing."
	ingest.request, ingest.answer = of[contextengine.IngestParams](), of[contextengine.IngestResult]()
	ingest.query = []queryParam{{name: "Idempotency-Key", in: "header", doc: "The same as `idempotencyKey` in the body."}}

	batch := post("/ingest-batch", "ingestBatch", tagTurns, "Store several messages, all or none", serveIngestBatch)
	batch.description = "The new messages get contiguous seqs. One bad item refuses the batch; a known key inside it is skipped. Opens the session where it is missing."
	batch.request, batch.answer = of[contextengine.IngestBatchParams](), of[contextengine.IngestBatchResult]()

	commit := post("/commit-turn", "commitTurn", tagTurns, "Store an accepted turn once", serveCommitTurn)
	commit.description = "The same `advancementKey` with the same messages answers `duplicate`, with others it is a conflict. Opens the session where it is missing."
	commit.request, commit.answer = of[contextengine.CommitTurnParams](), of[contextengine.CommitTurnResult]()

	after := post("/after-turn", "afterTurn", tagTurns, "Tell that a turn ended and what it added", serveAfterTurn)
	after.description = "The turn added `messages[prePromptMessageCount:]`; the part before is not compared. Opens the session where it is missing."
	after.request, after.answer = of[contextengine.AfterTurnParams](), of[contextengine.AfterTurnResult]()

	ops := []*operation{bootstrap, ingest, batch, commit, after}
	for _, op := range ops {
		op.refusals = []kind{kindEpoch, kindErased, kindLease, kindStaleHead}
	}
	for _, op := range []*operation{ingest, batch, commit} {
		op.refusals = append(op.refusals, kindIdempotency)
	}
	return ops
}

func (c *call) check() check { return check{limits: &c.api.cfg.Limits} }

func (c *call) newMessages() messageList { return messageList{most: c.api.cfg.Limits.BatchMessages} }

func (c *call) batchBytes() int64 { return c.api.cfg.Limits.BatchBytes + envelopeBytes }

func serveIngest(c *call) error {
	var p contextengine.IngestParams
	if err := c.decodeBig(c.api.cfg.Limits.MessageBytes+envelopeBytes, &p, c.liftMessage(&p.Message)); err != nil {
		return err
	}
	k := c.check()
	if header := c.r.Header.Get("Idempotency-Key"); header != "" {
		switch {
		case !utf8.ValidString(header):
			k.fail("Idempotency-Key", "not valid UTF-8")
		case p.IdempotencyKey != "" && p.IdempotencyKey != header:
			k.fail("idempotencyKey", "differs from the Idempotency-Key header")
		}
		p.IdempotencyKey = header
	}
	k.session(p.Session)
	k.expectations(p.Expectations)
	k.key("idempotencyKey", p.IdempotencyKey)
	k.message("message", p.Message)
	if k.err != nil {
		return k.err
	}
	p.Session = c.named(p.Session)
	res, err := c.api.cfg.Engine.Ingest(c.ctx, p)
	if err != nil {
		return err
	}
	return c.answer(&res)
}

func serveIngestBatch(c *call) error {
	// Members at the top shadow the embedded ones, here and below.
	body := struct {
		contextengine.IngestBatchParams
		Messages        messageList `json:"messages"`
		IdempotencyKeys stringList  `json:"idempotencyKeys"`
	}{
		Messages:        c.newMessages(),
		IdempotencyKeys: stringList{field: "idempotencyKeys", most: c.api.cfg.Limits.BatchMessages},
	}
	if err := c.decodeBig(c.batchBytes(), &body, c.liftMessages(&body.Messages)); err != nil {
		return err
	}
	p := body.IngestBatchParams
	p.Messages, p.IdempotencyKeys = body.Messages.items, body.IdempotencyKeys.items
	k := c.check()
	k.session(p.Session)
	k.expectations(p.Expectations)
	k.messages(p.Messages, 1)
	if len(p.IdempotencyKeys) > 0 && len(p.IdempotencyKeys) != len(p.Messages) {
		k.fail("idempotencyKeys", "must have one key per message")
	}
	for _, key := range p.IdempotencyKeys {
		k.key("idempotencyKeys", key)
	}
	if k.err != nil {
		return k.err
	}
	p.Session = c.named(p.Session)
	res, err := c.api.cfg.Engine.IngestBatch(c.ctx, p)
	if err != nil {
		return err
	}
	return c.answer(&res)
}

func serveBootstrap(c *call) error {
	body := struct {
		contextengine.BootstrapParams
		Messages messageList `json:"messages"`
	}{Messages: c.newMessages()}
	if err := c.decodeBig(c.batchBytes(), &body, c.liftMessages(&body.Messages)); err != nil {
		return err
	}
	p := body.BootstrapParams
	p.Messages = body.Messages.items
	k := c.check()
	k.required("sessionId", p.SessionID)
	k.session(p.Session)
	k.expectations(p.Expectations)
	k.messages(p.Messages, 0)
	if k.err != nil {
		return k.err
	}
	p.Session = c.named(p.Session)
	res, err := c.api.cfg.Engine.Bootstrap(c.ctx, p)
	if err != nil {
		return err
	}
	return c.answer(&res)
}

func serveCommitTurn(c *call) error {
	body := struct {
		contextengine.CommitTurnParams
		Messages messageList `json:"messages"`
	}{Messages: c.newMessages()}
	if err := c.decodeBig(c.batchBytes(), &body, c.liftMessages(&body.Messages)); err != nil {
		return err
	}
	p := body.CommitTurnParams
	p.Messages = body.Messages.items
	k := c.check()
	k.session(p.Session)
	k.expectations(p.Expectations)
	k.required("advancementKey", p.AdvancementKey)
	k.messages(p.Messages, 1)
	k.object("admission", p.Admission)
	k.object("terminal", p.Terminal)
	k.tokens("tokenBudget", p.TokenBudget, 1)
	k.usage(p.Usage)
	k.runtime(p.RuntimeContext)
	if k.err != nil {
		return k.err
	}
	p.Session = c.named(p.Session)
	res, err := c.api.cfg.Engine.CommitTurn(c.ctx, p)
	if err != nil {
		return err
	}
	return c.answer(&res)
}

func serveAfterTurn(c *call) error {
	body := struct {
		contextengine.AfterTurnParams
		Messages              messageList `json:"messages"`
		PrePromptMessageCount *int        `json:"prePromptMessageCount"`
	}{Messages: c.newMessages()}
	if err := c.decodeBig(c.batchBytes(), &body, c.liftMessages(&body.Messages)); err != nil {
		return err
	}
	p := body.AfterTurnParams
	p.Messages = body.Messages.items
	k := c.check()
	k.session(p.Session)
	k.expectations(p.Expectations)
	if p.Messages == nil {
		k.fail("messages", "is required")
	}
	switch n := body.PrePromptMessageCount; {
	case n == nil:
		k.fail("prePromptMessageCount", "is required")
	case *n < 0 || *n > len(p.Messages):
		k.fail("prePromptMessageCount", "must be from 0 to the number of messages")
	default:
		p.PrePromptMessageCount = *n
	}
	k.messages(p.Messages, 0)
	k.tokens("tokenBudget", p.TokenBudget, 1)
	k.usage(p.Usage)
	k.runtime(p.RuntimeContext)
	if k.err != nil {
		return k.err
	}
	p.Session = c.named(p.Session)
	res, err := c.api.cfg.Engine.AfterTurn(c.ctx, p)
	if err != nil {
		return err
	}
	return c.answer(&res)
}
