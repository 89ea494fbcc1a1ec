package audit

import "encoding/json"

// epochs: they go up by one, once each; a step's summaries stand right before
// it, and none is written twice.
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
			var body struct{ Base, Epoch int64 }
			if err := json.Unmarshal(row.Data, &body); err != nil {
				c.failf("seq %d cannot be read: %v", row.Seq, err)
				continue
			}
			if body.Base != epoch || body.Epoch != epoch+1 {
				c.failf("seq %d steps from epoch %d to %d within epoch %d", row.Seq, body.Base, body.Epoch, epoch)
			}
			epoch = body.Epoch
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
