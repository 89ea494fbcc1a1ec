import { html, useState, useEffect, useRef } from '../lib/html.js'
import { path } from '../lib/api.js'
import { go, sessionLink } from '../lib/route.js'
import { useLoad } from '../lib/load.js'
import { find } from '../lib/find.js'
import { follow } from '../lib/stream.js'
import { messageType } from '../lib/event.js'
import { number } from '../lib/format.js'
import { EventRow } from '../ui/row.js'
import { Failure, Waiting, Empty, Field, Mark } from '../ui/small.js'

const rows = 50
const kept = 500 // of a live tail: older ones are a page away

const roles = ['user', 'assistant', 'toolResult', 'system', 'note']
const types = {
  turns: ['turn.committed', 'turn.completed'],
  epochs: ['epoch.rotated', 'leaf.moved', 'session.reset', 'ancestor.erased', 'message.superseded'],
  summaries: ['summary.created'],
  lineage: ['forked', 'subagent.prepared', 'subagent.ended'],
  host: ['host_session.bound', 'identity.linked'],
}

// filterOf is what `show` in the route stands for: a role, a group of types, or
// everything.
function filterOf(show) {
  if (types[show]) return { type: types[show].join(','), match: (e) => types[show].includes(e.type) }
  if (show === 'messages') return { match: (e) => e.type === messageType }
  if (roles.includes(show)) return { match: (e) => e.role === show }
  return { every: true, match: () => true }
}

// Log is a page of events in their order. A page begins at `at`, ends at `upto`
// or stands around `seq`; without any of them it ends at the head.
export function Log({ session, query }) {
  const key = session.sessionKey
  const { show } = query
  const seq = Number(query.seq) || 0
  // The newest page stays where it is while the session grows.
  const [newest, setNewest] = useState(session.head)
  const head = Math.max(newest, seq)
  const [from, older] = Number(query.at) ? [Number(query.at), false]
    : Number(query.upto) ? [Number(query.upto), true]
      : seq ? [Math.max(1, seq - rows / 2), false] : [newest, true]
  const { data, error, loading, reload } = useLoad(
    (signal) => find(key, { from, older, head, want: rows, ...filterOf(show) }, signal), [key, from, older, head, show])
  const place = (changes) => sessionLink(key, 'log', { show, ...changes })
  const following = query.follow === '1'
  const toNewest = () => { setNewest(session.head); go(place({})) }
  return html`
    <div class="controls">
      <${Field} label="Show" class="narrow">
        <select value=${show ?? ''} onChange=${(e) => go(sessionLink(key, 'log', { show: e.target.value, follow: query.follow }))}>
          <option value="">everything</option><option value="messages">messages</option>
          ${roles.map((r) => html`<option value=${r}>${`only ${r}`}</option>`)}
          ${Object.keys(types).map((t) => html`<option value=${t}>${t}</option>`)}
        </select><//>
      <${GoTo} go=${(n) => go(place({ seq: n }))} head=${session.head} />
      <label class="check"><input type="checkbox" checked=${following} onChange=${(e) => { setNewest(session.head); go(place({ follow: e.target.checked })) }} /> Follow what comes</label>
    </div>
    <${Failure} error=${error} retry=${reload} />
    ${!data ? !error && html`<${Waiting} />` : following
      ? html`<${Tail} key=${key + show} sessionKey=${key} begin=${data} show=${show} />`
      : html`
        <div class=${'rows' + (loading ? ' stale' : '')} aria-busy=${loading}>
          ${data.events.map((e) => html`<${EventRow} key=${e.seq} event=${e} marked=${e.seq === seq} />`)}
        </div>
        ${data.events.length === 0 && html`<${Empty}>Nothing of this kind ${data.first <= 1 && data.last >= head ? 'in this log' : `from seq ${number(data.first)} to ${number(data.last)}`}.<//>`}`}
    ${data && !following && html`
      <nav class="pager" aria-label="Pages">
        ${data.first > 1 && html`<a class="button" href=${place({ at: 1 })}>First</a>
        <a class="button" href=${place({ upto: data.first - 1 })}>Older</a>`}
        <span class="dim num">${number(data.first)}–${number(data.last)} of ${number(session.head)}</span>
        ${data.last < session.head && html`<a class="button" href=${place({ at: data.last + 1 })} onClick=${() => setNewest(session.head)}>Newer</a>
        <button onClick=${toNewest}>Newest</button>`}
      </nav>`}`
}

function GoTo({ go: to, head }) {
  const [text, setText] = useState('')
  const enter = (event) => { event.preventDefault(); const n = Math.round(Number(text)); if (n >= 1) to(Math.min(n, head)) }
  return html`<form class="goto" onSubmit=${enter}><${Field} label="Go to seq"><input type="number" min="1" max=${head} value=${text} onInput=${(e) => setText(e.target.value)} /><//><button>Go</button></form>`
}

// Tail goes on behind a page as events come. It moves the page only for who is
// at its end.
function Tail({ sessionKey, begin, show }) {
  const [events, set] = useState(begin.events)
  const [state, setState] = useState(null)
  const end = useRef()
  const atEnd = useRef(true)
  useEffect(() => {
    const stop = new AbortController()
    const { match } = filterOf(show)
    follow(path(sessionKey, 'events', 'stream'), {
      lastId: begin.last, signal: stop.signal, onState: setState,
      onEvent: (e) => {
        if (!match(e)) return
        atEnd.current = end.current && end.current.getBoundingClientRect().top < innerHeight + 80
        set((list) => [...list, e].slice(-kept))
      },
    })
    return () => stop.abort()
  }, [sessionKey, show])
  useEffect(() => { if (atEnd.current) end.current?.scrollIntoView({ block: 'end' }) }, [events])
  return html`
    <div class="rows" role="log" aria-live="off">
      ${events.map((e) => html`<${EventRow} key=${e.seq} event=${e} />`)}
    </div>
    <p class="streamstate" ref=${end}><${StreamState} of=${state} /></p>`
}

export function StreamState({ of: state }) {
  if (state === null) return html`<span class="dim">Connecting…</span>`
  if (state === 'live') return html`<${Mark} kind="live">live<//> <span class="dim">new events appear here</span>`
  return html`<${Failure} error=${state} />`
}
