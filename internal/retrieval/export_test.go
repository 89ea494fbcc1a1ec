package retrieval

// SetShelfBytes has a Searcher read that much of an encrypted session.
func SetShelfBytes(s *Searcher, n int64) { s.shelfBytes = n }
