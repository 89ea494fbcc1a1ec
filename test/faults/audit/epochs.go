package audit

import "encoding/json"

// epochs: they go up by one, once each; a step's summaries stand right before
// it, and none is written twice
// unless something else than compactions stepped between.
func (c *checker) epochs() {
	epoch := int64(1)
	coverage := make(map[string]int64)
	open := false // summaries wait for their step
	for _, row := range c.log {
		if row.Epoch != epoch && row.Type != "epoch.rotated" {
			c.failf("seq %d is of epoch %d within epoch %d", row.Seq, row.Epoch, epoch)
		}
		switch row.Type {
		case "summary.created":
			open = true
			key := covered(row.Data)
			if before, twice := coverage[key]; twice {
				c.failf("the summaries at seq %d and %d cover the same: %s", before, row.Seq, key)
			}
			coverage[key] = row.Seq
		case "epoch.rotated":
			open = false
			var body struct {
				Base, Epoch int64
				Cause       string
			}
			if err := json.Unmarshal(row.Data, &body); err != nil {
				c.failf("seq %d cannot be read: %v", row.Seq, err)
				continue
			}
			undone := body.Cause == "undo" && body.Base < epoch // names what it goes back to
			if body.Base != epoch && !undone || body.Epoch != epoch+1 {
				c.failf("seq %d steps from epoch %d to %d within epoch %d", row.Seq, body.Base, body.Epoch, epoch)
			}
			epoch = body.Epoch
			if body.Cause != "compaction" && body.Cause != "" {
				clear(coverage)
			}
		case "session.reset", "leaf.moved", "ancestor.erased":
			// Each is a step by itself. What was live may be retired, and its sources
			// be covered anew.
			epoch++
			clear(coverage)
		default:
			if open {
				c.failf("seq %d (%s) stands between summaries and their step", row.Seq, row.Type)
				open = false
			}
		}
	}
	if open {
		c.failf("summaries without their step end the log")
	}
}

// covered is what a summary replaces, as text that compares.
func covered(data []byte) string {
	var body struct {
		Sources  json.RawMessage `json:"sources"`
		Children json.RawMessage `json:"children"`
	}
	if err := json.Unmarshal(data, &body); err != nil {
		return err.Error()
	}
	return string(body.Sources) + " " + string(body.Children)
}
