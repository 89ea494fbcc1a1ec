package engine

import (
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/store"
)

// anchorKeys are what a turn whose first message this is may be known by.
func anchorKeys(entryID string, m message.Message) []store.Key {
	var out []store.Key
	if entryID != "" {
		out = append(out, store.Key{Kind: store.AnchorKey, Value: []byte("entry\x00" + entryID)})
	}
	if m.EntryKey != "" && len(m.EntryKey) <= maxKeyBytes {
		out = append(out, store.Key{Kind: store.AnchorKey, Value: []byte("key\x00" + m.EntryKey)})
	}
	return out
}
