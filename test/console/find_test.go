package console

import (
	"encoding/json"
	"fmt"
	"testing"
)

// TestPagesOfAnyLog: what is found in a log is what is there, next to where it
// was looked for, however dense it is and wherever the API ends its pages.
func TestPagesOfAnyLog(t *testing.T) {
	t.Parallel()
	p := newTab(t, theNode.base)
	p.open("#/node")
	p.see("ready")
	// A log of 12,000 events: each third one ends a turn, few are a user's; the API's
	// pages end after `most` rows at the latest.
	script := func(call string, most int) string {
		return fmt.Sprintf(`(async () => {
			const { find } = await import('/console/lib/find.js')
			const log = Array.from({ length: 12000 }, (_, i) => ({ seq: i + 1, type: i %% 3 === 2 ? 'turn.completed' : 'message.appended', role: i %% 100 === 0 ? 'user' : 'assistant' }))
			const real = window.fetch
			window.fetch = async (url, init) => {
				if (!url.includes('/events')) return real(url, init)
				const q = new URLSearchParams(url.split('?')[1])
				const type = q.get('type')
				const rows = log.filter((e) => e.seq > Number(q.get('after')) && (!type || type.includes(e.type)))
				const events = rows.slice(0, Math.min(Number(q.get('limit')), %d))
				return new Response(JSON.stringify({ events, next: events.length < rows.length || (!type && events.at(-1).seq < 12000) ? events.at(-1).seq : null }))
			}
			try {
				const { events, first, last } = await find('x', { head: 12000, want: 50, %s })
				return JSON.stringify([events.length, events[0]?.seq ?? 0, events.at(-1)?.seq ?? 0, first, last])
			} finally { window.fetch = real }
		})()`, most, call)
	}
	for _, tc := range []struct {
		call string
		most int
		want string // rows, first and last of them, first and last seq that was looked at
	}{
		{"from: 12000, older: true, every: true", 500, "[50 11951 12000 11951 12000]"},
		{"from: 100, older: true, every: true", 500, "[50 51 100 51 100]"},
		{"from: 30, older: true, every: true", 500, "[30 1 30 1 30]"},
		{"from: 11990, older: false, every: true", 500, "[11 11990 12000 11990 12000]"},
		{"from: 101, older: false, every: true", 500, "[50 101 150 101 150]"},
		// Pages that end early: the end that was asked for is shown.
		{"from: 12000, older: true, every: true", 20, "[10 11991 12000 11991 12000]"},
		{"from: 101, older: false, every: true", 20, "[20 101 120 101 120]"},
		// By type: more of them than a page holds.
		{"from: 12000, older: true, type: 'turn.completed'", 500, "[50 11853 12000 11853 12000]"},
		{"from: 12000, older: true, type: 'turn.completed'", 20, "[50 11853 12000 11853 12000]"},
		{"from: 1, older: false, type: 'turn.completed'", 500, "[50 3 150 1 150]"},
		{"from: 1, older: false, type: 'turn.completed'", 20, "[50 3 150 1 150]"},
		{"from: 12000, older: true, type: 'forked'", 500, "[0 0 0 1 12000]"},
		// By role, which is looked for in the rows.
		{"from: 12000, older: true, match: (e) => e.role === 'user'", 500, "[50 7001 11901 7001 12000]"},
		{"from: 12000, older: true, match: (e) => e.role === 'user'", 20, "[50 7001 11901 7001 12000]"},
		{"from: 2, older: false, match: (e) => e.role === 'user'", 500, "[50 101 5001 2 5001]"},
		{"from: 12000, older: true, match: (e) => e.seq === 1", 500, "[0 0 0 2001 12000]"},
	} {
		var got []int
		if err := json.Unmarshal([]byte(await(p, script(tc.call, tc.most))), &got); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got) != tc.want {
			t.Errorf("%s, pages of %d: %v, want %s", tc.call, tc.most, got, tc.want)
		}
	}
}
