package message

import "bytes"

// pageBytes is how much of a document counts as one image: providers bill
// documents by the page, and a page is seldom larger.
const pageBytes = 96 << 10

// media reads images, documents and other blocks that are no text; false when
// the block is none of them.
func (c *content) media(kind string, p *part) bool {
	switch kind {
	case "image":
		if p.source != nil {
			c.dialects.anthropic = true
			size, _ := sourceSize(p.source)
			c.image(size)
			return true
		}
		c.dialects.openclaw = true
		c.image(base64Size(inside(p.data)))
	case "image_url", "input_image":
		c.dialects.openai = true
		c.image(dataURLSize(urlOf(p.image, "url")))
	case "input_audio":
		c.dialects.openai = true
		c.image(base64Size(inside(member(p.audio, "data"))))
	case "file":
		c.dialects.openai = true
		c.pages(dataURLSize(urlOf(p.file, "file_data")))
	case "document":
		c.dialects.anthropic = true
		if text := member(p.source, "content"); text != nil {
			c.read(text)
			return true
		}
		size, text := sourceSize(p.source)
		if text != "" {
			c.text(text)
			return true
		}
		c.pages(size)
	default:
		return false
	}
	return true
}

// pages counts a document as so many images.
func (c *content) pages(size int) {
	for ; size > pageBytes; size -= pageBytes {
		c.image(pageBytes)
	}
	c.image(size)
}

// sourceSize reads an Anthropic source: the decoded size of base64 data, 0 for
// a URL or file id, or the text of a plain-text one.
func sourceSize(v []byte) (size int, text string) {
	data := member(v, "data")
	if stringOf(member(v, "type")) == "text" {
		return 0, stringOf(data)
	}
	return base64Size(inside(data)), ""
}

// urlOf is the raw URL string of a part: the string itself, or a member of an
// object.
func urlOf(v []byte, name string) []byte {
	if len(v) > 0 && v[0] == '"' {
		return inside(v)
	}
	return inside(member(v, name))
}

// member finds a member of an object; nil when there is none.
func member(v []byte, name string) []byte {
	if len(v) == 0 || v[0] != '{' {
		return nil
	}
	var found []byte
	s := scanner{data: v}
	for m := s.object(); m.next(); {
		if v := s.span(); string(m.key) == name && !isNull(v) {
			found = v
		}
	}
	return found
}

// inside is a string's raw inside; nil for anything else.
func inside(v []byte) []byte {
	if len(v) < 2 || v[0] != '"' {
		return nil
	}
	return v[1 : len(v)-1]
}

// dataURLSize is the decoded size of a data: URL, 0 for any other.
func dataURLSize(raw []byte) int {
	if !bytes.HasPrefix(raw, []byte("data:")) {
		return 0
	}
	_, after, ok := bytes.Cut(raw, []byte{','})
	if !ok {
		return 0
	}
	return base64Size(after)
}

func base64Size(raw []byte) int {
	n := len(raw)
	for n > 0 && raw[n-1] == '=' {
		n--
	}
	return n * 3 / 4
}
