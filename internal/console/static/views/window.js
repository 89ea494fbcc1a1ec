import { html, useState } from '../lib/html.js'
import { get, post, path } from '../lib/api.js'
import { go, sessionLink, logLink } from '../lib/route.js'
import { useLoad, useDraft } from '../lib/load.js'
import { read, byReason } from '../lib/assembled.js'
import { steps } from '../lib/find.js'
import { number, plural, ranges } from '../lib/format.js'
import { Text } from '../ui/text.js'
import { Failure, Waiting, Empty, Field, Facts } from '../ui/small.js'
import { Shares } from '../ui/shares.js'
import { WindowRow } from '../ui/windowrow.js'

// Window is what the model sees, or saw when `seq` was the newest event.
export function Window({ session, query, defaultBudget, before }) {
  const key = session.sessionKey
  const set = (changes) => go(sessionLink(key, 'window', { ...query, ...changes }), { replace: true })
  const seq = Math.min(Number(query.seq) || session.head, session.head)
  const { data, error, loading, reload } = useLoad((signal) => assemble(key, { seq, ...pick(query) }, signal),
    [key, seq, session.epoch, query.budget, query.model])
  const known = useLoad((signal) => (session.compactions > 0 ? covers(key, signal) : new Map()), [key, session.epoch])
  const w = data && read(data, Number(query.budget) || session.tokenBudget || defaultBudget, known.data, before)
  return html`
    <${Controls} session=${session} query=${query} seq=${seq} set=${set} />
    <${Failure} error=${error} retry=${reload} />
    ${!w ? !error && html`<${Waiting} />` : html`
      <div class=${loading ? 'stale' : ''} aria-busy=${loading}>
        <${Shares} window=${w} />
        ${w.overBudget && html`<${OverBudget} of=${w.overBudget} sessionKey=${key} />`}
        <${Facts} of=${[
          ['messages', number(w.rows.length)], ['head', number(w.head)], ['epoch', w.epoch],
          ['fingerprint', w.fingerprint && html`<code class="print" title=${w.fingerprint}>${w.fingerprint}</code>`],
          ['neither shown nor summarized', w.unseen > 0 && number(w.unseen)],
        ]} />
        ${w.addition && html`<section class="addition"><h3>Addition to the system prompt</h3><${Text} text=${w.addition} most=${1500} /></section>`}
        <${Rows} rows=${w.rows} sessionKey=${key} before=${before} />
        <${LeftOut} of=${w.leftOut} sessionKey=${key} />
      </div>`}`
}

// assemble never asks for "now": that would be recorded as a model's window.
export const assemble = (key, { seq, budget, model }, signal) =>
  post(path(key, 'assemble'), { explain: true, asOfSeq: seq, tokenBudget: budget, model }, signal)

// covers tells what each summary stands for, by its id.
export async function covers(key, signal) {
  const { summaries } = await get(path(key, 'summaries'), {}, signal)
  return new Map(summaries.map((s) => [s.id, s.covers]))
}

export const pick = (query) => ({ budget: Number(query.budget) || undefined, model: query.model || undefined })

function Controls({ session, query, seq, set }) {
  const { head } = session
  const [at, setAt] = useDraft(seq, (n) => set({ seq: n >= head ? undefined : n }), 150)
  const [budget, setBudget] = useDraft(query.budget ?? '', (v) => set({ budget: v }), 400)
  const [model, setModel] = useDraft(query.model ?? '', (v) => set({ model: v }), 400)
  const { data } = useLoad((signal) => steps(session.sessionKey, head, signal), [session.sessionKey, session.epoch])
  const place = (event) => { const n = Math.round(Number(event.target.value)); if (n >= 1) setAt(Math.min(n, head)) }
  return html`
    <form class="controls" onSubmit=${(e) => e.preventDefault()}>
      <label class="field wide"><span>As of seq ${at >= head && html`<span class="mark live">now</span>`}</span>
        <input type="range" min="1" max=${head} value=${at} onInput=${place} aria-label="As of seq" aria-valuetext=${`seq ${at} of ${head}`} /></label>
      <${Field} label="Seq" class="narrow"><input type="number" min="1" max=${head} value=${at} onInput=${place} /><//>
      <${Field} label="Go to" class="narrow">
        <select value="" onChange=${(e) => e.target.value && setAt(Number(e.target.value))}>
          <option value="">an epoch…</option>
          <option value=${head}>now</option>
          ${(data?.steps ?? []).map((s) => html`
            <option value=${s.seq}>${`epoch ${s.epoch}: ${s.cause}, seq ${s.seq}`}</option>
            <option value=${s.seq - 1}>${`right before epoch ${s.epoch}`}</option>`)}
        </select><//>
      <${Field} label="Budget" class="narrow"><input type="number" min="1" value=${budget} onInput=${(e) => setBudget(e.target.value)} placeholder="its own" /><//>
      <${Field} label="Model" class="narrow"><input value=${model} onInput=${(e) => setModel(e.target.value)} placeholder="the session's" spellcheck=${false} /><//>
    </form>`
}

const step = 200

function Rows({ rows, sessionKey, before }) {
  const [most, setMost] = useState(step)
  if (rows.length === 0) return html`<${Empty}>This window is empty.<//>`
  const largest = Math.max(...rows.map((r) => r.tokens), 1)
  return html`
    <section class="rows" aria-label="Messages of the window">
      ${rows.slice(0, most).map((r, i) => html`<${WindowRow} key=${r.kind + (r.seq || -i)} row=${r} sessionKey=${sessionKey} largest=${largest} before=${before} />`)}
    </section>
    ${rows.length > most && html`
      <div class="pager"><button onClick=${() => setMost(most + step)}>Show ${number(Math.min(step, rows.length - most))} more of ${number(rows.length - most)}</button>
      <button onClick=${() => setMost(rows.length)}>Show all</button></div>`}`
}

function OverBudget({ of: o, sessionKey }) {
  return html`
    <div class="failure"><strong>Over budget</strong>
      <span>The smallest valid window needs ${number(o.needed)} tokens, the budget is ${number(o.budget)}. Largest:
        ${o.items.slice(0, 5).map((it) => html` <a href=${logLink(sessionKey, it.seq)}>seq ${it.seq}</a> (${number(it.tokens)})`)}</span></div>`
}

function LeftOut({ of: leftOut, sessionKey }) {
  if (leftOut.length === 0) return null
  return html`
    <section class="leftout">
      <h3>Left out <span class="dim">${plural(leftOut.length, 'entry', 'entries')}</span></h3>
      ${byReason(leftOut).map((g) => html`
        <details key=${g.reason}>
          <summary>${g.reason} <span class="dim">${number(g.items.length)} · ${plural(g.tokens, 'token')}</span></summary>
          <ul class="seqs">${runs(g.items).slice(0, 200).map((r) => html`<li><a href=${logLink(sessionKey, r.from)}>${ranges([r])}</a></li>`)}</ul>
        </details>`)}
    </section>`
}

// runs joins neighbours: a hundred seqs read better as one range.
function runs(items) {
  const out = []
  for (const { seq } of [...items].sort((a, b) => a.seq - b.seq)) {
    const last = out[out.length - 1]
    if (last && last.to === seq - 1) last.to = seq
    else out.push({ from: seq, to: seq })
  }
  return out
}
