package api

import (
	"errors"
	"fmt"

	"github.com/engined/engined/contextengine"
)

func transcriptOperations() []*operation {
	sync := post("/transcript", "transcript", tagTurns, "Take over a page of the host's transcript", serveTranscript)
	sync.description = "Entries that came by another way before (a committed turn, a copy of the transcript under another `sessionId`) are recognised. " +
		"The page and `cursor` are stored together or not at all; the same page again is all duplicates. Opens the session where it is missing."
	sync.request, sync.answer = of[contextengine.TranscriptParams](), of[contextengine.TranscriptResult]()
	sync.refusals = []kind{kindEpoch, kindErased, kindStaleHead}

	cursor := get(sessionPath+"/transcript", "readTranscript", tagTurns, "Read where the host goes on with its transcript", serveTranscriptCursor)
	cursor.keyed = true
	cursor.answer = of[contextengine.TranscriptCursor]()
	cursor.query = []queryParam{
		{name: "sessionId", in: "query", doc: "The host's transcript id under this key; required."},
		{name: "gatewayId", in: "query", doc: "Which gateway asks, where several share a session."},
	}
	return []*operation{sync, cursor}
}

var errNoTranscripts = errors.New("this node takes no transcripts")

func serveTranscript(c *call) error {
	if c.api.cfg.Transcripts == nil {
		return errNoTranscripts
	}
	body := struct {
		contextengine.TranscriptParams
		Entries messageList `json:"entries"`
	}{Entries: messageList{field: "entries", most: c.api.cfg.Limits.BatchMessages}}
	if err := c.decodeBig(c.batchBytes(), &body, c.liftList("entries", &body.Entries)); err != nil {
		return err
	}
	p := body.TranscriptParams
	p.Entries = body.Entries.items
	k := c.check()
	k.required("sessionId", p.SessionID)
	k.session(p.Session)
	k.expectations(p.Expectations)
	k.key("lifecycleRevision", p.LifecycleRevision)
	if p.Entries == nil {
		k.fail("entries", "is required")
	}
	for i, e := range p.Entries {
		if k.err != nil {
			break
		}
		k.message(fmt.Sprintf("entries[%d]", i), e)
	}
	if k.err != nil {
		return k.err
	}
	p.Session = c.named(p.Session)
	res, err := c.api.cfg.Transcripts.Transcript(c.ctx, p)
	if err != nil {
		return err
	}
	return c.answer(&res)
}

func serveTranscriptCursor(c *call) error {
	if c.api.cfg.Transcripts == nil {
		return errNoTranscripts
	}
	q, err := c.parameters()
	if err != nil {
		return err
	}
	s := contextengine.Session{SessionID: q.Get("sessionId"), GatewayID: q.Get("gatewayId")}
	k := c.check()
	k.required("sessionId", s.SessionID)
	k.session(s)
	if k.err != nil {
		return k.err
	}
	res, err := c.api.cfg.Transcripts.TranscriptCursor(c.ctx, c.named(s))
	if err != nil {
		return err
	}
	return c.answer(&res)
}
