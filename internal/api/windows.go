package api

import "github.com/engined/engined/contextengine"

func windowOperations() []*operation {
	assemble := post("/assemble", "assemble", tagWindows, "Get the window for the next model call", serveAssemble)
	assemble.description = "`messages` and `prompt` are hints and never stored. An unknown session has an empty window and is not opened."
	assemble.request, assemble.answer = of[contextengine.AssembleParams](), of[contextengine.AssembleResult]()

	compact := post("/compact", "compact", tagWindows, "Make the next window smaller now", serveCompact)
	compact.description = "Having nothing to do is an answer: `ok: true, compacted: false` with a `reason`."
	compact.request, compact.answer = of[contextengine.CompactParams](), of[contextengine.CompactResult]()
	compact.kind = compaction
	compact.refusals = []kind{kindEpoch, kindErased, kindStaleHead}

	maintain := post("/maintain", "maintain", tagWindows, "Do housekeeping", serveMaintain)
	maintain.request, maintain.answer = of[contextengine.MaintainParams](), of[contextengine.MaintainResult]()

	ops := []*operation{assemble, compact, maintain}
	for _, op := range ops {
		op.bodyOptional = true
	}
	return ops
}

func serveAssemble(c *call) error {
	body := struct {
		contextengine.AssembleParams
		Messages       messageList `json:"messages"`
		AvailableTools stringList  `json:"availableTools"`
	}{
		Messages:       c.newMessages(),
		AvailableTools: stringList{field: "availableTools", most: c.api.cfg.Limits.BatchMessages},
	}
	if err := c.decodeBig(c.batchBytes(), &body, c.liftMessages(&body.Messages)); err != nil {
		return err
	}
	p := body.AssembleParams
	p.Messages, p.AvailableTools = body.Messages.items, body.AvailableTools.items
	k := c.check()
	k.session(p.Session)
	k.tokens("tokenBudget", p.TokenBudget, 1)
	k.atLeast("asOfSeq", p.AsOfSeq, 1)
	k.messages(p.Messages, 0)
	k.key("model", p.Model)
	k.key("citationsMode", p.CitationsMode)
	if k.err != nil {
		return k.err
	}
	p.Session = c.named(p.Session)
	res, err := c.api.cfg.Engine.Assemble(c.ctx, p)
	if err != nil {
		return err
	}
	return c.answerWindow(&res)
}

func serveCompact(c *call) error {
	var p contextengine.CompactParams
	if err := c.decode(c.api.cfg.Limits.MessageBytes, &p); err != nil {
		return err
	}
	k := c.check()
	k.session(p.Session)
	k.expectations(p.Expectations)
	k.tokens("tokenBudget", p.TokenBudget, 1)
	k.tokens("currentTokenCount", p.CurrentTokenCount, 1)
	switch p.CompactionTarget {
	case "", "budget", "threshold":
	default:
		k.fail("compactionTarget", `must be "budget" or "threshold"`)
	}
	if k.err != nil {
		return k.err
	}
	p.Session = c.named(p.Session)
	res, err := c.api.cfg.Engine.Compact(c.ctx, p)
	if err != nil {
		return err
	}
	return c.answer(&res)
}

func serveMaintain(c *call) error {
	var p contextengine.MaintainParams
	if err := c.decode(c.api.cfg.Limits.MessageBytes, &p); err != nil {
		return err
	}
	k := c.check()
	k.session(p.Session)
	if k.err != nil {
		return k.err
	}
	if err := c.expectLease(p.Session); err != nil {
		return err
	}
	p.Session = c.named(p.Session)
	res, err := c.api.cfg.Engine.Maintain(c.ctx, p)
	if err != nil {
		return err
	}
	return c.answer(&res)
}
