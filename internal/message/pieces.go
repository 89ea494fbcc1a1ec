package message

import "unicode/utf8"

// bounds are offsets in a body.
type bounds struct{ from, to int }

// piece is one run of a result's visible text within the body.
type piece struct {
	// literal is the JSON string of the text, raw its inside.
	literal bounds
	raw     []byte
	// block is the array element that holds it.
	block bounds
	// opaque is a block of unknown kind: it counts as its JSON text and stays
	// or goes whole.
	opaque bool
	cost   int
}

func (p *piece) text() string {
	if p.opaque {
		return unquoteJSON(p.raw)
	}
	return unquote(p.raw)
}

// chars counts code points.
func (p *piece) chars() int {
	if p.opaque || !hasEscape(p.raw) {
		return utf8.RuneCount(p.raw)
	}
	n := 0
	for i := 0; i < len(p.raw); n++ {
		_, size := codePoint(p.raw[i:])
		i += size
	}
	return n
}

// standIn is what an opaque piece is replaced by: a text block within an
// array, a string where the piece is the whole content.
func (p *piece) standIn(text string) []byte {
	if p.literal == p.block {
		return []byte(`"` + text + `"`)
	}
	return []byte(`{"type":"text","text":"` + text + `"}`)
}

// resultText is the text of one tool result, in order.
type resultText struct {
	pieces []piece
	cost   int
}

// findResults locates the texts in the body of a Result or a Note, the same that
// Read shows; of a bashExecution the output alone.
func findResults(body []byte) []*resultText {
	whole := scanner{data: body}
	role, content, output, summary := "", bounds{}, bounds{}, bounds{}
	for m := whole.object(); m.next(); {
		at := whole.bounds()
		switch string(m.key) {
		case "role":
			if v := body[at.from:at.to]; !isNull(v) {
				role = stringOf(v)
			}
		case "content":
			content = at
		case "output":
			if !isNull(body[at.from:at.to]) {
				output = at
			}
		case "summary":
			if !isNull(body[at.from:at.to]) {
				summary = at
			}
		}
	}
	switch role {
	case "bashExecution":
		content = output
	case "branchSummary", "compactionSummary":
		content = summary
	}
	if role != "user" {
		return []*resultText{{pieces: findPieces(body, content)}}
	}
	var list []*resultText
	blocks := scanner{data: body[:content.to], pos: content.from}
	for it := blocks.array(); it.next(); {
		at := blocks.bounds()
		if body[at.from] != '{' {
			continue
		}
		kind, inner := "", bounds{}
		one := scanner{data: body[:at.to], pos: at.from}
		for m := one.object(); m.next(); {
			v := one.bounds()
			if isNull(body[v.from:v.to]) {
				continue
			}
			switch string(m.key) {
			case "type":
				kind = stringOf(body[v.from:v.to])
			case "content":
				inner = v
			}
		}
		if kind == "tool_result" {
			list = append(list, &resultText{pieces: findPieces(body, inner)})
		}
	}
	return list
}

// findPieces locates the texts of one result's content.
func findPieces(body []byte, at bounds) []piece {
	if at.from == at.to {
		return nil
	}
	v := body[at.from:at.to]
	if v[0] == '"' {
		return []piece{{literal: at, raw: v[1 : len(v)-1], block: at}}
	}
	if v[0] != '[' {
		// An unknown shape can't be cut within; it is replaced whole.
		if isNull(v) {
			return nil
		}
		return []piece{{literal: at, raw: v, block: at, opaque: true}}
	}
	var list []piece
	s := scanner{data: body[:at.to], pos: at.from}
	for it := s.array(); it.next(); {
		block := s.bounds()
		if p, ok := findPiece(body, block); ok {
			list = append(list, p)
		}
	}
	return list
}

func findPiece(body []byte, block bounds) (piece, bool) {
	v := body[block.from:block.to]
	if v[0] == '"' {
		return piece{literal: block, raw: v[1 : len(v)-1], block: block}, len(v) > 2
	}
	var probe content
	probe.dialects = &dialectMarks{}
	probe.block(v)
	shown := false
	for i := range probe.blocks {
		if probe.blocks[i].Kind == Image {
			return piece{}, false
		}
		shown = shown || probe.blocks[i].Text != ""
	}
	if !shown {
		return piece{}, false
	}
	if v[0] == '{' {
		kind, text := "", bounds{}
		s := scanner{data: body[:block.to], pos: block.from}
		for m := s.object(); m.next(); {
			at := s.bounds()
			if isNull(body[at.from:at.to]) {
				continue
			}
			switch string(m.key) {
			case "type":
				kind = stringOf(body[at.from:at.to])
			case "text":
				text = at
			}
		}
		if kind == "text" || kind == "input_text" || kind == "output_text" {
			return piece{literal: text, raw: body[text.from+1 : text.to-1], block: block}, true
		}
	}
	return piece{raw: v, block: block, opaque: true}, true
}

// bounds consumes any value and tells where it stands.
func (s *scanner) bounds() bounds {
	s.peek()
	from := s.pos
	s.skip(0)
	return bounds{from, s.pos}
}
