package compact

// Effort is what running a plan takes at most, in uncalibrated tokens.
type Effort struct {
	// Calls counts the summaries to write; Rounds those that must be written one
	// after the other.
	Calls  int `json:"calls"`
	Rounds int `json:"rounds"`
	// InputTokens is what summarizers are shown, with about what the frame around
	// each source takes; OutputTokens what they write.
	InputTokens  int `json:"inputTokens"`
	OutputTokens int `json:"outputTokens"`
}

// promptTokens is about what a prompt takes beside its source.
const promptTokens = 900

// Effort estimates. Sources are shown shortened where they are long, so the
// true numbers are often lower; a corrected answer doubles those of its summary.
func (p Plan) Effort() Effort {
	var e Effort
	for _, s := range p.Steps {
		e.Calls++
		e.Rounds = max(e.Rounds, s.stage+1)
		e.InputTokens += s.SourceTokens + promptTokens
		e.OutputTokens += s.MaxTokens
	}
	return e
}
