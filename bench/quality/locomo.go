package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// conversation is one of LoCoMo's: two people over months.
type conversation struct {
	id        string
	turns     []turn
	questions []question
}

type turn struct {
	id, speaker, text string
	// sitting counts the sittings of the conversation, at is its time.
	sitting int
	at      time.Time
	user    bool
}

// message is the turn as a host would send it.
func (t *turn) message() json.RawMessage {
	role := "assistant"
	if t.user {
		role = "user"
	}
	raw, err := json.Marshal(map[string]any{"role": role, "name": t.speaker, "content": t.text, "timestamp": t.at.UnixMilli()})
	if err != nil {
		panic(err) // strings and a number always marshal
	}
	return raw
}

// question has the indexes of the turns that answer it.
type question struct {
	text     string
	evidence map[int]bool
}

// sittings is more than any conversation has.
const sittings = 100

// readLocomo reads a file of conversations, or all *.json of a directory.
func readLocomo(path string) ([]conversation, error) {
	files := []string{path}
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if info.IsDir() {
		if files, err = filepath.Glob(filepath.Join(path, "*.json")); err != nil || len(files) == 0 {
			return nil, errors.Join(err, &fs.PathError{Op: "look for *.json in", Path: path, Err: fs.ErrNotExist})
		}
	}
	var out []conversation
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		var samples []sample
		if err := json.Unmarshal(raw, &samples); err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
		for i := range samples {
			c, err := samples[i].conversation()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f, err)
			}
			out = append(out, c)
		}
	}
	return out, nil
}

type sample struct {
	ID           string                     `json:"sample_id"`
	Conversation map[string]json.RawMessage `json:"conversation"`
	QA           []struct {
		Question string   `json:"question"`
		Evidence []string `json:"evidence"`
	} `json:"qa"`
}

func (s *sample) conversation() (conversation, error) {
	out := conversation{id: s.ID}
	var first string
	if err := json.Unmarshal(s.Conversation["speaker_a"], &first); err != nil {
		return out, fmt.Errorf("speaker_a: %w", err)
	}
	at := map[string]int{}
	for n := 1; n < sittings; n++ {
		var said []struct {
			Speaker string `json:"speaker"`
			ID      string `json:"dia_id"`
			Text    string `json:"text"`
		}
		var when string
		name := fmt.Sprintf("session_%d", n)
		if s.Conversation[name] == nil {
			continue
		}
		if err := errors.Join(json.Unmarshal(s.Conversation[name], &said), json.Unmarshal(s.Conversation[name+"_date_time"], &when)); err != nil {
			return out, fmt.Errorf("%s: %w", name, err)
		}
		began, err := time.Parse("3:04 pm on 2 January, 2006", when)
		if err != nil {
			return out, fmt.Errorf("%s: %w", name, err)
		}
		for i, t := range said {
			at[t.ID] = len(out.turns)
			out.turns = append(out.turns, turn{
				id: t.ID, speaker: t.Speaker, text: t.Text, sitting: n, at: began.Add(time.Duration(i) * time.Minute), user: t.Speaker == first,
			})
		}
	}
	for _, qa := range s.QA {
		q := question{text: qa.Question, evidence: map[int]bool{}}
		for _, e := range qa.Evidence {
			// Some name several turns in one text; a name of no turn is a typo.
			for _, id := range strings.FieldsFunc(e, func(r rune) bool { return r == ';' || r == ',' || r == ' ' }) {
				if i, ok := at[id]; ok {
					q.evidence[i] = true
				}
			}
		}
		if len(q.evidence) > 0 {
			out.questions = append(out.questions, q)
		}
	}
	return out, nil
}
