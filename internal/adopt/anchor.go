package adopt

import (
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/store"
)

// The forms of an anchor: a host entry's id, a user's idempotency key, an
// assistant's response id.
const (
	byEntry    = "entry\x00"
	byKey      = "key\x00"
	byResponse = "response\x00"
)

// maxAnchorBytes bounds what a host may call an entry; longer names are no anchors.
const maxAnchorBytes = 512

func anchor(form, id string) []byte {
	if id == "" || len(id) > maxAnchorBytes {
		return nil
	}
	return []byte(form + id)
}

// anchorKeys are what a committed turn may know this entry by.
func anchorKeys(entryID string, m message.Message) []store.Key {
	var out []store.Key
	add := func(form, id string) {
		if v := anchor(form, id); v != nil {
			out = append(out, store.Key{Kind: store.AnchorKey, Value: v})
		}
	}
	switch m.Role {
	case message.User:
		add(byEntry, entryID)
		add(byKey, m.EntryKey)
	case message.Assistant:
		add(byResponse, m.ResponseID)
	}
	return out
}
