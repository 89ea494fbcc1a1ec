package summarize

import "slices"

// fromChildren takes the items of older summaries over, oldest first, each once.
// Only the newest child's asks may still be pending: those of older ones were
// followed by more talk, and become part of the timeline.
func fromChildren(children []Child) []item {
	var found [timeline + 1][]item
	for n, c := range children {
		ids := 0
		for _, it := range parse(c.Text) {
			it.text = clean(it.text)
			if it.section == identifiers {
				// Each summary named its best ones first.
				it.score = worth[identifiers].first - worth[identifiers].step*ids
				ids++
			}
			if it.section == asks && n < len(children)-1 {
				it.section = timeline
				it.score = someAsk
			}
			found[it.section] = append(found[it.section], it)
		}
	}
	var out []item
	for s, items := range found {
		items = newestOfEach(items)
		switch section(s) {
		case identifiers:
			out = append(out, items...)
		case asks:
			slices.Reverse(items)
			for rank := range items {
				items[rank].score = worth[asks].first - worth[asks].step*rank
			}
			out = append(out, items...)
		case timeline:
			out = append(out, scoredTimeline(items)...)
		default:
			out = append(out, scored(items)...)
		}
	}
	return out
}

// again is what an identifier gains by each further summary that names it.
const again = 60

// newestOfEach drops what is said again later. Identifiers keep the kind that
// says most, and count for more.
func newestOfEach(items []item) []item {
	last := map[string]int{}
	kind := map[string]string{}
	score := map[string]int{}
	for i, it := range items {
		k := it.key()
		if _, ok := last[k]; ok {
			score[k] = max(score[k], it.score) + again
		} else {
			score[k] = it.score
		}
		last[k] = i
		if it.kind == modified || kind[k] == "" {
			kind[k] = it.kind
		}
	}
	var out []item
	for i, it := range items {
		if k := it.key(); last[k] == i {
			it.kind = kind[k]
			if it.section == identifiers {
				it.score = score[k]
			}
			out = append(out, it)
		}
	}
	return out
}

// scoredTimeline ranks by who speaks: users, failures, then the rest.
func scoredTimeline(items []item) []item {
	var users, other []int
	for i, it := range items {
		if it.who == string(User) || it.score == someAsk {
			users = append(users, i)
		} else {
			other = append(other, i)
		}
	}
	for rank, i := range order(len(users)) {
		items[users[i]].score = someAsk - 25*rank
	}
	if n := len(users); n > 0 {
		items[users[0]].score = max(items[users[0]].score, firstAsk)
		items[users[n-1]].score = latestAsk
	}
	for rank, i := range order(len(other)) {
		items[other[i]].score = worth[timeline].first + 100 - worth[timeline].step*rank
	}
	return items
}
