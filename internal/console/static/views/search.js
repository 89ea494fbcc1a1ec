import { html, useState, useEffect } from '../lib/html.js'
import { get } from '../lib/api.js'
import { go, link, logLink, sessionLink } from '../lib/route.js'
import { marked } from '../lib/marks.js'
import { number } from '../lib/format.js'
import { SessionKey } from '../ui/text.js'
import { Failure, Waiting, Empty, Field, Role, Time, Mark } from '../ui/small.js'
import { visible } from '../lib/visible.js'

const fields = ['q', 'match', 'regex', 'sessionKey', 'role', 'kind', 'tool', 'epoch', 'since', 'until', 'path', 'sort']
const roles = ['user', 'assistant', 'toolResult', 'system', 'note']
const kinds = ['message', 'toolResult', 'toolCall', 'summary']

// Search finds what was said, in all sessions, in the window or not.
export function Search({ query }) {
  const [form, setForm] = useState(query)
  const asked = fields.map((f) => query[f] ?? '').join('\n')
  useEffect(() => setForm(query), [asked])
  const put = (name) => (e) => setForm((f) => ({ ...f, [name]: e.target.type === 'checkbox' ? (e.target.checked ? (name === 'path' ? 'active' : 'true') : '') : e.target.value }))
  const enter = (event) => { event.preventDefault(); go(link(['search'], Object.fromEntries(fields.map((f) => [f, form[f]])))) }
  const choice = (name, label, list) => html`
    <${Field} label=${label} class="narrow"><select name=${name} value=${form[name] ?? ''} onChange=${put(name)}>${list.map(([value, title]) => html`<option value=${value}>${title}</option>`)}</select><//>`
  return html`
    <h1>Search</h1>
    <form class="search" role="search" onSubmit=${enter}>
      <div class="searchline">
        <input type="search" name="q" aria-label="Search for" value=${form.q ?? ''} onInput=${put('q')} placeholder='words, "a phrase", an-identifier, pre*' spellcheck=${false} autofocus />
        <button class="primary">Search</button>
      </div>
      <details open=${fields.some((f) => f !== 'q' && query[f])}>
        <summary>Filters</summary>
        <div class="controls">
          ${choice('match', 'Match', [['', 'all words'], ['any', 'any of them, for questions']])}
          ${choice('sort', 'Order', [['', 'best first'], ['recent', 'newest first']])}
          ${choice('kind', 'Kind', [['', 'all'], ...kinds.map((k) => [k, k])])}
          ${choice('role', 'Role', [['', 'all'], ...roles.map((r) => [r, r])])}
          <${Field} label="Session key" class="narrow"><input value=${form.sessionKey ?? ''} onInput=${put('sessionKey')} spellcheck=${false} /><//>
          <${Field} label="Tool" class="narrow"><input value=${form.tool ?? ''} onInput=${put('tool')} spellcheck=${false} /><//>
          <${Field} label="Epoch" class="narrow"><input type="number" min="1" value=${form.epoch ?? ''} onInput=${put('epoch')} /><//>
          <${Field} label="Since" class="narrow"><input type="date" value=${form.since ?? ''} onInput=${put('since')} /><//>
          <${Field} label="Before" class="narrow"><input type="date" value=${form.until ?? ''} onInput=${put('until')} /><//>
          <label class="check"><input type="checkbox" checked=${form.regex === 'true'} onChange=${put('regex')} /> as an expression (RE2)</label>
          <label class="check"><input type="checkbox" checked=${form.path === 'active'} onChange=${put('path')} /> only on the present path</label>
        </div>
      </details>
    </form>
    ${query.q ? html`<${Hits} key=${asked} query=${query} />` : html`<${Empty}>Everything that was said can be found: shown, summarized or hidden by a reset. All words are required; <code>docs/search.md</code> has the details.<//>`}`
}

function Hits({ query }) {
  const [state, set] = useState({ hits: [], next: undefined, loading: true, error: null })
  const more = async (after, signal) => {
    set((s) => ({ ...s, loading: true, error: null }))
    try {
      const wanted = Object.fromEntries(fields.map((f) => [f, query[f]]))
      const page = await get('/v1/search', { ...wanted, after, limit: 25 }, signal)
      set((s) => ({ hits: after ? [...s.hits, ...page.hits] : page.hits, next: page.next, partial: page.partial, index: page.index, loading: false, error: null }))
    } catch (error) {
      if (!signal?.aborted) set((s) => ({ ...s, loading: false, error }))
    }
  }
  useEffect(() => {
    const stop = new AbortController()
    more(undefined, stop.signal)
    return () => stop.abort()
  }, [])
  const { hits, next, loading, error, index, partial } = state
  return html`
    ${index && !index.current && html`<p class="notice">The index is behind the log: the newest events may be missing.</p>`}
    ${index?.note && html`<p class="notice">${visible(index.note)}</p>`}
    <section class="hits" aria-busy=${loading} aria-label="Hits">
      ${hits.map((h) => html`<${Hit} key=${h.sessionKey + h.seq + h.kind + h.snippet} of=${h} />`)}
    </section>
    <${Failure} error=${error} retry=${() => more(hits.length ? next : undefined)} />
    ${loading && html`<${Waiting}>Searching…<//>`}
    ${!loading && !error && hits.length === 0 && html`<${Empty}>Nothing found${partial ? ' so far' : ''}.<//>`}
    ${!loading && next && html`<div class="pager"><button onClick=${() => more(next)}>${partial ? 'Search on' : 'More'}</button><span class="dim num">${number(hits.length)} so far</span></div>`}`
}

function Hit({ of: h }) {
  const href = h.kind === 'summary' ? sessionLink(h.sessionKey, 'summaries', { id: h.seq }) : logLink(h.sessionKey, h.seq)
  return html`
    <article class="hit">
      <div class="hithead">
        <a href=${href}><${SessionKey} of=${h.sessionKey} /> <span class="num">#${h.seq}</span></a>
        <${Role} of=${h.role} />
        ${h.tool && html`<bdi class="key dim">${visible(h.tool).slice(0, 60)}</bdi>`}
        ${h.kind === 'toolCall' && html`<${Mark}>call<//>`}
        ${!h.active && html`<${Mark} title="not on the session's present path: reset, rewound or undone">not on the path<//>`}
        <span class="dim at">epoch ${h.epoch} · <${Time} at=${h.at} /></span>
      </div>
      <a class="snippet" href=${href} tabindex="-1"><bdi>${marked(h.snippet, h.marks ?? []).map((p) => (p.hit ? html`<mark>${p.text}</mark>` : p.text))}</bdi></a>
    </article>`
}
