package message

import "fmt"

// InvalidError says why bytes are no message that can be stored.
type InvalidError struct {
	// Reason is a short phrase: "not a JSON object", "nested too deeply".
	Reason string
	// Offset is the byte at which the trouble was seen.
	Offset int
	// Limit is the limit that was passed; 0 where none was.
	Limit int64
	// TooLarge tells a size over a limit from a shape that can't be accepted.
	TooLarge bool
}

func (e *InvalidError) Error() string {
	if e.Limit > 0 {
		return fmt.Sprintf("message: %s (limit %d)", e.Reason, e.Limit)
	}
	return fmt.Sprintf("message: %s at byte %d", e.Reason, e.Offset)
}
