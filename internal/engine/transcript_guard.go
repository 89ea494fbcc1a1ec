package engine

import (
	"context"

	"github.com/engined/engined/contextengine"
)

var (
	_ Transcriber = (*Guard)(nil)
	_ Transcriber = (*Lossless)(nil)
)

// Transcript goes to the engine if it takes transcripts, else to the default
// engine, whose log then holds it.
func (g *Guard) Transcript(ctx context.Context, p contextengine.TranscriptParams) (contextengine.TranscriptResult, error) {
	return extra(ctx, g, OpTranscript, func(ctx context.Context, e Transcriber) (contextengine.TranscriptResult, error) {
		return e.Transcript(ctx, p)
	})
}

// TranscriptCursor reads where a host goes on.
func (g *Guard) TranscriptCursor(ctx context.Context, s contextengine.Session) (contextengine.TranscriptCursor, error) {
	return extra(ctx, g, OpTranscript, func(ctx context.Context, e Transcriber) (contextengine.TranscriptCursor, error) {
		return e.TranscriptCursor(ctx, s)
	})
}
