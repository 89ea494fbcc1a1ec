package tokens

import "github.com/engined/engined/internal/message"

// What a message costs beside its text: the marks that providers put around
// messages, calls and results, ids included. Measured ones are lower; these
// err on the safe side.
const (
	perMessage = 6
	perCall    = 12
	perResult  = 8
	// perNote is the fixed sentence and the tags that hosts wrap around
	// summaries and command output.
	perNote = 24
)

// An image costs by its size class, never by the length of its base64:
// providers bill by the picture's area, which its bytes only hint at. A size
// of 0 is unknown (a URL).
const (
	smallImage  = 800  // up to 64 KiB decoded
	mediumImage = 1600 // up to 512 KiB, or unknown
	largeImage  = 2400
)

// Image estimates an image of so many decoded bytes.
func Image(bytes int) int {
	switch {
	case bytes <= 0:
		return mediumImage
	case bytes <= 64<<10:
		return smallImage
	case bytes <= 512<<10:
		return mediumImage
	}
	return largeImage
}

// Message estimates what a message costs when it is shown whole: its texts,
// reasoning, calls with name and arguments, results and images, and the marks
// around them. It never returns 0, for Hidden messages neither; message.Facts
// leaves those out.
func Message(m message.Message) int {
	n := perMessage
	if m.Role == message.Note {
		n += perNote
	}
	for i := range m.Blocks {
		switch b := &m.Blocks[i]; b.Kind {
		case message.ToolCall:
			n += perCall + Text(b.Call.Name) + Text(b.Call.Args)
		case message.ToolResult:
			n += perResult + Text(b.Text)
		case message.Image:
			n += Image(b.ImageBytes)
		default:
			n += Text(b.Text)
		}
	}
	return n
}
