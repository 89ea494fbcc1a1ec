package contextengine

// StepResult answers a call that changed what the session's window is made of:
// a reset, a rewind, an undone compaction. Epoch is the new one.
type StepResult struct {
	Head  int64 `json:"head"`
	Epoch int64 `json:"epoch"`
}
