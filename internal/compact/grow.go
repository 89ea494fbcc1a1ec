package compact

// growths bounds the tries to grow a tail: each takes all of the room that is
// left or, after one that was too much, half of it.
const growths = 8

// growTail gives the tail what messages and summaries leave of the goal, so that
// a window uses what it was given: from the least tail, with all that is older in
// summaries, it goes on to leave the newest of those as they are. Summaries keep
// the room that they had: for a longer tail no older one is condensed.
//
// Whatever is grown, the goal stays below the threshold by the same distance, and
// that distance is what keeps compactions apart.
func (p *planner) growTail(tail int, chunks []chunk) (int, []chunk) {
	p.roomSet = true
	p.slack /= 4
	goal := min(p.goal, p.limit) - p.in.Ahead
	most, room := p.tailMax, goal-p.after
	for range growths {
		if room < p.least || len(chunks) == 0 {
			break
		}
		p.tailMax = most + room
		longer := p.chooseTail()
		fewer := p.cutChunks(longer)
		p.draw(fewer)
		if p.after > goal || len(p.steps) == 0 {
			room /= 2
			continue
		}
		tail, chunks = longer, fewer
		most, room = p.tailMax, goal-p.after
	}
	return tail, chunks
}
