import { html, useState, useEffect, useRef } from '../lib/html.js'
import { get } from '../lib/api.js'
import { go, link } from '../lib/route.js'
import { useLoad, useDraft } from '../lib/load.js'
import { follow } from '../lib/stream.js'
import { messageType } from '../lib/event.js'
import { plural } from '../lib/format.js'
import { EventRow } from '../ui/row.js'
import { Failure, Waiting, Empty, Field } from '../ui/small.js'
import { StreamState } from './log.js'

const kept = 300

// Feed is what happens now in all sessions, newest on top.
export function Feed({ query }) {
  const { data, error, reload } = useLoad((signal) => get('/v1/feed', { latest: 50 }, signal), [])
  return html`
    <h1>Feed</h1>
    <${Failure} error=${error} retry=${reload} />
    ${!data ? !error && html`<${Waiting} />` : html`<${Live} begin=${data} query=${query} />`}`
}

function Live({ begin, query }) {
  const [events, set] = useState(() => begin.events.toReversed())
  const [waiting, setWaiting] = useState([])
  const [state, setState] = useState(null)
  const [paused, setPaused] = useState(false)
  const isPaused = useRef(false)
  isPaused.current = paused
  const write = (changes) => go(link(['feed'], { ...query, ...changes }), { replace: true })
  const [key, setKey] = useDraft(query.key ?? '', (v) => write({ key: v }))
  useEffect(() => {
    const stop = new AbortController()
    // Events may come by the hundred: what has come since the last frame is
    // shown at once.
    let arrived = []
    let frame = 0
    const show = () => {
      frame = 0
      const now = arrived.reverse()
      arrived = []
      const put = isPaused.current ? setWaiting : set
      put((list) => [...now, ...list].slice(0, kept))
    }
    follow('/v1/feed/stream', {
      lastId: begin.cursor, signal: stop.signal, onState: setState,
      onEvent: (e) => { arrived.push(e); frame ||= setTimeout(show, 100) },
    })
    return () => { stop.abort(); clearTimeout(frame) }
  }, [])
  const resume = () => { set((list) => [...waiting, ...list].slice(0, kept)); setWaiting([]); setPaused(false) }
  const shown = events.filter((e) => (!key || e.sessionKey.includes(key)) && (!query.show || (query.show === 'messages') === (e.type === messageType)))
  return html`
    <div class="controls">
      <${Field} label="Session key holds" class="narrow"><input type="search" value=${key} onInput=${(e) => setKey(e.target.value)} spellcheck=${false} /><//>
      <${Field} label="Show" class="narrow"><select value=${query.show ?? ''} onChange=${(e) => write({ show: e.target.value })}>
        <option value="">everything</option><option value="messages">messages</option><option value="others">all but messages</option></select><//>
      <button onClick=${() => (paused ? resume() : setPaused(true))} aria-pressed=${paused}>${paused ? `Go on (${plural(waiting.length, 'new event')})` : 'Pause'}</button>
      <span class="streamstate"><${StreamState} of=${state} /></span>
    </div>
    <div class="rows feed" role="log" aria-live="off">
      ${shown.map((e) => html`<${EventRow} key=${e.sessionKey + '\n' + e.seq} event=${e} session />`)}
    </div>
    ${shown.length === 0 && html`<${Empty}>Nothing yet.<//>`}`
}
