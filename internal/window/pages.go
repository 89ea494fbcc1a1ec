package window

// NeedMore reports whether older entries must be loaded before Build answers
// what it would answer with all of them. A reader walks the log from its end in
// pages, calls it with what it has so far (in log order, Older set while there
// is more), and stops when it is false. It reads on until the entries pass the
// budget, and further while the newest user or assistant message, the call of an
// unread result, the beginning of a turn whose heartbeats are in question, or the
// assistant messages that pruning leaves alone are not among them.
//
// Each call looks at all entries given: let pages grow.
func NeedMore(in Input) bool {
	if !in.Older {
		return false
	}
	l := arrange(in)
	if l.unsettled || l.unresolved || l.newestUser < 0 || l.lastRead == 0 {
		return true
	}
	// What lies before the first edge is not known, so the tail must start
	// behind it.
	f := l.fit()
	return f.first <= l.edges().min
}
