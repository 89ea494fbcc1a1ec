package message

import "strings"

// content gathers the blocks of a message while it is read.
type content struct {
	dialects *dialectMarks
	blocks   []Block
	flags    Flags
	// results: tool_result blocks are results here, not unknown blocks.
	results   bool
	hasResult bool
	hasOther  bool
	// more is text still to be added to the last block.
	more strings.Builder
}

// manyBlocks is from where on neighbouring texts share a block, so that an
// array of millions of tiny elements does not cost a block each.
const manyBlocks = 1024

// part is the members of one content block, as JSON text.
type part struct {
	kind, text, thinking, data, mime       []byte
	id, name, args, source, inner, isError []byte
	image, file, audio, refusal            []byte
	openclaw, anthropic                    bool
}

// read takes a message's content: a string, an array of blocks, or nothing.
func (c *content) read(v []byte) {
	switch {
	case len(v) == 0 || isNull(v):
	case v[0] == '"':
		c.text(stringOf(v))
	case v[0] == '[':
		s := scanner{data: v}
		for it := s.array(); it.next(); {
			c.block(s.span())
		}
		c.flush()
	default:
		c.text(unquoteJSON(v))
	}
}

func (c *content) text(t string) {
	if t == "" {
		return
	}
	if strings.TrimSpace(t) != "" {
		c.users()
	}
	if n := len(c.blocks); n >= manyBlocks && c.blocks[n-1].Kind == Text {
		c.more.WriteString("\n")
		c.more.WriteString(t)
		return
	}
	c.add(Block{Kind: Text, Text: t})
}

// users notes what is no result: beside results it is the user's.
func (c *content) users() {
	c.hasOther = true
	if c.hasResult {
		c.flags |= UserText
	}
}

func (c *content) add(b Block) {
	c.flush()
	c.blocks = append(c.blocks, b)
}

func (c *content) flush() {
	if c.more.Len() > 0 {
		c.blocks[len(c.blocks)-1].Text += c.more.String()
		c.more.Reset()
	}
}

func (c *content) image(bytes int) {
	c.users()
	c.flags |= HasImage
	c.add(Block{Kind: Image, ImageBytes: bytes})
}

func (c *content) block(v []byte) {
	if len(v) == 0 || v[0] != '{' {
		if len(v) > 0 && v[0] == '"' {
			c.text(stringOf(v))
		} else {
			c.text(unquoteJSON(v))
		}
		return
	}
	p := parsePart(v)
	if p.openclaw {
		c.dialects.openclaw = true
	}
	if p.anthropic {
		c.dialects.anthropic = true
	}
	switch kind := stringOf(p.kind); kind {
	case "text", "input_text", "output_text":
		c.text(stringOf(p.text))
	case "refusal":
		c.dialects.openai = true
		c.text(stringOf(p.refusal))
	case "thinking", "redacted_thinking":
		c.thinking(kind, &p)
	case "toolCall", "toolUse", "functionCall":
		c.dialects.openclaw = true
		c.call(&p)
	case "tool_use":
		c.dialects.anthropic = true
		c.call(&p)
	case "tool_result":
		c.dialects.anthropic = true
		if !c.results {
			c.text(unquoteJSON(v))
			return
		}
		c.result(stringOf(p.id), p.inner)
		if string(p.isError) == "true" {
			c.flags |= IsError
		}
	default:
		if !c.media(kind, &p) {
			c.text(unquoteJSON(v))
		}
	}
}

// thinking keeps reasoning. What is encrypted counts as its data: that is what
// travels.
func (c *content) thinking(kind string, p *part) {
	text := stringOf(p.thinking)
	if kind == "redacted_thinking" || text == "" {
		if t := stringOf(p.data); t != "" {
			text = t
		}
	}
	if !c.dialects.openclaw {
		c.dialects.anthropic = true
	}
	c.add(Block{Kind: Thinking, Text: text})
}

func (c *content) call(p *part) {
	args := stringOf(p.args)
	if args == "" && len(p.args) > 0 && p.args[0] != '"' {
		args = unquoteJSON(p.args)
	}
	c.add(Block{Kind: ToolCall, Call: Call{
		ID: stringOf(p.id), Name: stringOf(p.name), Args: args,
	}})
}

// result takes one tool's result: its text in one block, then its images.
func (c *content) result(id string, v []byte) {
	if c.hasOther {
		c.flags |= UserText
	}
	c.hasResult = true
	inner := content{dialects: c.dialects}
	inner.read(v)
	b := Block{Kind: ToolResult, ResultOf: id, Text: join(inner.blocks)}
	if b.Text != "" {
		c.flags |= Cuttable
	}
	c.add(b)
	for i := range inner.blocks {
		if inner.blocks[i].Kind == Image {
			c.flags |= HasImage
			c.blocks = append(c.blocks, inner.blocks[i])
		}
	}
}

// cuttable marks a note that has text.
func (c *content) cuttable(may bool) {
	for i := range c.blocks {
		if may && c.blocks[i].Kind == Text && c.blocks[i].Text != "" {
			c.flags |= Cuttable
		}
	}
}

// join is the texts of blocks, a line break between them.
func join(blocks []Block) string {
	texts := make([]string, 0, 4)
	for i := range blocks {
		if blocks[i].Text != "" {
			texts = append(texts, blocks[i].Text)
		}
	}
	return strings.Join(texts, "\n")
}

// toolCalls reads OpenAI's tool_calls.
func (c *content) toolCalls(v []byte) {
	if len(v) == 0 || v[0] != '[' {
		return
	}
	s := scanner{data: v}
	for it := s.array(); it.next(); {
		v := s.span()
		if v[0] != '{' {
			continue
		}
		var id string
		var fn []byte
		one := scanner{data: v}
		for m := one.object(); m.next(); {
			v := one.span()
			switch string(m.key) {
			case "id":
				id = stringOf(v)
			case "function", "custom":
				fn = v
			}
		}
		var p part
		if len(fn) > 0 && fn[0] == '{' {
			p = parsePart(fn)
		}
		c.call(&p)
		c.blocks[len(c.blocks)-1].Call.ID = id
	}
}

// functionCall reads OpenAI's older function_call. It has no id; the name
// stands for it.
func (c *content) functionCall(v []byte) {
	if len(v) == 0 || v[0] != '{' {
		return
	}
	p := parsePart(v)
	p.id = p.name
	c.call(&p)
}

func parsePart(v []byte) part {
	var p part
	s := scanner{data: v}
	for m := s.object(); m.next(); {
		v := s.span()
		if isNull(v) {
			continue
		}
		switch string(m.key) {
		case "type":
			p.kind = v
		case "text":
			p.text = v
		case "thinking":
			p.thinking = v
		case "thinkingSignature", "textSignature", "thoughtSignature", "partialArgs", "partialJson":
			p.openclaw = true
		case "signature", "cache_control", "citations":
			p.anthropic = true
		case "data":
			p.data = v
		case "mimeType":
			p.mime, p.openclaw = v, true
		case "id", "tool_use_id":
			p.id = v
		case "name":
			p.name = v
		case "arguments", "input":
			p.args = v
		case "source":
			p.source = v
		case "content":
			p.inner = v
		case "is_error":
			p.isError = v
		case "image_url":
			p.image = v
		case "file":
			p.file = v
		case "input_audio":
			p.audio = v
		case "refusal":
			p.refusal = v
		}
	}
	return p
}
