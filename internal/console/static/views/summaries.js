import { html, useState, useEffect, useRef, useMemo } from '../lib/html.js'
import { get, path } from '../lib/api.js'
import { logLink, sessionLink } from '../lib/route.js'
import { useLoad } from '../lib/load.js'
import { number, plural, money, percent } from '../lib/format.js'
import { covered } from '../lib/places.js'
import { Text, Line } from '../ui/text.js'
import { Failure, Waiting, Empty, Mark, Facts, Time, Role } from '../ui/small.js'

// Summaries is the tree: what stands in the window on top, what it was made of
// below, and what an undo or a rewind took out of use.
export function Summaries({ session, query, before }) {
  const key = session.sessionKey
  const { data, error, reload } = useLoad((signal) => get(path(key, 'summaries'), {}, signal), [key, session.epoch])
  const tree = useMemo(() => data && grow(data.summaries), [data])
  const wanted = Number(query.id) || 0
  if (error) return html`<${Failure} error=${error} retry=${reload} />`
  if (!tree) return html`<${Waiting} />`
  if (tree.byId.size === 0) return html`<${Empty}>No summaries yet: nothing of this session has been compacted.<//>`
  const open = new Set(tree.above(wanted))
  const cost = data.summaries.reduce((n, s) => n + (s.costMicros ?? 0), 0)
  const live = tree.live.reduce((n, s) => ({ tokens: n.tokens + s.tokens, covered: n.covered + s.coveredTokens }), { tokens: 0, covered: 0 })
  return html`
    <${Facts} of=${[
      ['live', plural(tree.live.length, 'summary', 'summaries')],
      ['they stand for', plural(live.covered, 'token')],
      ['they take', `${number(live.tokens)} (${percent(live.tokens, live.covered)})`],
      ['ever made', number(tree.byId.size)],
      ['cost so far', cost > 0 && money(cost)],
    ]} />
    <${Branches} of=${tree.live} tree=${tree} sessionKey=${key} before=${before} open=${open} wanted=${wanted} />
    ${tree.retired.length > 0 && html`
      <details class="retired" open=${tree.retired.some((s) => open.has(s.id))}>
        <summary>No longer in use <span class="dim">${plural(tree.retired.length, 'summary', 'summaries')}: undone, rewound, or replaced</span></summary>
        <${Branches} of=${tree.retired} tree=${tree} sessionKey=${key} before=${before} open=${open} wanted=${wanted} />
      </details>`}`
}

function grow(list) {
  const byId = new Map(list.map((s) => [s.id, s]))
  const parent = new Map()
  for (const s of list) for (const c of s.children ?? []) if (s.live || !parent.has(c)) parent.set(c, s.id)
  const first = (s) => s.covers[0]?.from ?? 0
  const inOrder = (a, b) => first(a) - first(b) || a.id - b.id
  return {
    byId,
    live: list.filter((s) => s.live).sort(inOrder),
    retired: list.filter((s) => !s.live && !parent.has(s.id)).sort(inOrder),
    above(id) {
      const out = []
      for (let at = id; at !== undefined && byId.has(at) && !out.includes(at); at = parent.get(at)) out.push(at)
      return out
    },
  }
}

const step = 50

function Branches({ of: list, tree, ...rest }) {
  const [most, setMost] = useState(step)
  return html`
    <ul class="tree">
      ${list.slice(0, most).map((s) => html`<${Branch} key=${s.id} of=${s} tree=${tree} ...${rest} />`)}
    </ul>
    ${list.length > most && html`<button onClick=${() => setMost(most + step)}>Show more of ${number(list.length - most)}</button>`}`
}

function Branch({ of: s, tree, sessionKey, before, open: opened, wanted }) {
  const [open, setOpen] = useState(opened.has(s.id))
  const [below, setBelow] = useState(opened.has(s.id) && s.id !== wanted)
  const row = useRef()
  useEffect(() => { if (s.id === wanted) row.current.scrollIntoView({ block: 'center' }) }, [wanted])
  const children = (s.children ?? []).map((id) => tree.byId.get(id)).filter(Boolean)
  return html`
    <li ref=${row} class=${'branch' + (s.id === wanted ? ' marked' : '')} data-id=${s.id}>
      <div class="branchhead">
        <button class="opener" aria-expanded=${open} onClick=${() => setOpen(!open)}>
          <span class="level" title="level">L${s.level}</span>
          ${s.live && html`<${Mark} kind="live">live<//>`}
          ${s.degraded && html`<${Mark} kind="warn" title="written by a rule in a model's place; a model writes it anew">degraded<//>`}
          <span class="num">${covered(s.covers, before)}</span>
          ${s.sessionKey && html`<${Mark} title="made in a session that this one descends from">inherited<//>`}
          <span class="num dim">${number(s.coveredTokens)} → ${number(s.tokens)} tokens</span>
          <${Line} text=${author(s)} most=${60} class="dim" />
        </button>
      </div>
      ${open && html`
        <div class="branchbody">
          <${Text} text=${s.text} most=${3000} />
          <${Facts} of=${[
            ['id', html`<a href=${sessionLink(sessionKey, 'summaries', { id: s.id })}>${s.id}</a>`], ['epoch', s.epoch], ['made', html`<${Time} at=${s.createdAt} />`],
            ['by', html`<${Line} text=${author(s)} most=${60} />`], ['prompt', s.promptVersion],
            ['source tokens', number(s.sourceTokens)], ['model tokens in / out', s.inputTokens && `${number(s.inputTokens)} / ${number(s.outputTokens)}`],
            ['cost', s.costMicros && money(s.costMicros)], ['took', s.tookMillis && `${number(s.tookMillis)} ms`],
          ]} />
          <button aria-expanded=${below} onClick=${() => setBelow(!below)}>${below ? 'Hide what it covers' : children.length ? `Its ${plural(children.length, 'summary', 'summaries')}` : 'The messages it covers'}</button>
          ${below && (children.length
            ? html`<${Branches} of=${children} tree=${tree} sessionKey=${sessionKey} before=${before} open=${opened} wanted=${wanted} />`
            : html`<${Covered} sessionKey=${sessionKey} id=${s.id} />`)}
        </div>`}
    </li>`
}

// author is the summarizer and, where it asked one, its model.
const author = (s) => s.summarizer + (s.model && s.model !== 'none' ? ` (${s.model})` : '')

// Covered reads what a summary of the lowest level stands for, a page at a time.
function Covered({ sessionKey, id }) {
  const [after, setAfter] = useState(0)
  const [items, set] = useState([])
  const { data, error, loading, reload } = useLoad(async (signal) => {
    const page = await get(path(sessionKey, 'summaries', id, 'expand'), { after: after || undefined, maxTokens: 8000 }, signal)
    set((list) => (after === 0 ? page.items : [...list, ...page.items]))
    return page
  }, [sessionKey, id, after])
  return html`
    <div class="covered">
      ${items.map((it) => html`
        <div class="coveredrow" key=${it.kind + (it.seq ?? it.id)}>
          <a class="seq" href=${logLink(it.sessionKey ?? sessionKey, it.seq)}>${it.seq}</a>
          <${Role} of=${it.role ?? it.kind} />
          <${Text} text=${it.text} most=${600} />
          <span class="num dim tokens">${number(it.tokens)}</span>
        </div>`)}
      <${Failure} error=${error} retry=${reload} />
      ${loading && items.length === 0 && html`<${Waiting} />`}
      ${data?.next && html`<button disabled=${loading} onClick=${() => setAfter(data.next)}>Show more <span class="dim">(${number(items.length)} of ${number(data.total)})</span></button>`}
    </div>`
}
