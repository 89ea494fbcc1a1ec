package engine

import (
	"context"
	"fmt"

	"github.com/engined/engined/contextengine"
)

var (
	_ Transcriber = (*Guard)(nil)
	_ Transcriber = (*Lossless)(nil)
)

// Transcript goes to the engine if it takes transcripts, else to the default
// engine, whose log then holds it.
func (g *Guard) Transcript(ctx context.Context, p contextengine.TranscriptParams) (contextengine.TranscriptResult, error) {
	return transcribe(ctx, g, func(ctx context.Context, e Transcriber) (contextengine.TranscriptResult, error) {
		return e.Transcript(ctx, p)
	})
}

// TranscriptCursor reads where a host goes on.
func (g *Guard) TranscriptCursor(ctx context.Context, s contextengine.Session) (contextengine.TranscriptCursor, error) {
	return transcribe(ctx, g, func(ctx context.Context, e Transcriber) (contextengine.TranscriptCursor, error) {
		return e.TranscriptCursor(ctx, s)
	})
}

func transcribe[R any](ctx context.Context, g *Guard, do func(context.Context, Transcriber) (R, error)) (R, error) {
	var none R
	c := guarded[R]{op: OpTranscript, bind: func(in *instance) bound[R] {
		return func(ctx context.Context) (R, error) {
			e, ok := in.engine.(Transcriber)
			if !ok {
				return none, fmt.Errorf("the engine %q takes no transcripts", in.ID)
			}
			return do(ctx, e)
		}
	}}
	if err := aborted(ctx); err != nil {
		return none, err
	}
	in, err := g.mount.acquire(ctx)
	if err != nil {
		return none, err
	}
	if in != nil {
		_, takes := in.engine.(Transcriber)
		in.leave()
		if takes {
			return call(ctx, g, c)
		}
	}
	return byDefault(ctx, g, c)
}
