// Package adopt takes what a host keeps in its own transcript over into the
// log. A host writes a session into a tree of entries; a message may also have
// come by a commit, an after-turn or a bootstrap before, under no name or
// another one. A page is read in three steps: which of its entries are known by
// their ids (identify), which are messages that came unnamed (name), and what is
// new, with the epoch that shows what the host's leaf shows (write). A Turn is the
// same meeting from the other side: a commit of what a transcript brought
// before.
//
// It works inside the lane's transaction, which internal/store holds;
// docs/transcript-sync.md has the rules.
package adopt
