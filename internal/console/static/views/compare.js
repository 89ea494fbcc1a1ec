import { html, useState } from '../lib/html.js'
import { go, sessionLink } from '../lib/route.js'
import { useLoad, useDraft } from '../lib/load.js'
import { read, compare } from '../lib/assembled.js'
import { steps } from '../lib/find.js'
import { number, plural } from '../lib/format.js'
import { Failure, Waiting, Field, Empty } from '../ui/small.js'
import { Shares } from '../ui/shares.js'
import { WindowRow } from '../ui/windowrow.js'
import { assemble, covers } from './window.js'

// Compare shows two windows of a session: what left, came and stayed.
export function Compare({ session, query, defaultBudget, before }) {
  const key = session.sessionKey
  const { head } = session
  const known = useLoad((signal) => steps(key, head, signal), [key, session.epoch])
  const compaction = known.data?.steps.find((s) => s.cause === 'compaction')
  const a = Number(query.a) || (known.data && (compaction ? compaction.seq - 1 : Math.max(1, Math.floor(head / 2))))
  const b = Number(query.b) || (known.data && (compaction ? compaction.seq : head))
  const budgets = [query.budgetA || query.budget, query.budgetB || query.budget].map((v) => Number(v) || undefined)
  const two = useLoad(async (signal) => a && b && (await Promise.all(
    [a, b].map((seq, i) => assemble(key, { seq: Math.min(seq, head), budget: budgets[i], model: query.model || undefined }, signal)))),
  [key, a, b, ...budgets, query.model])
  const made = useLoad((signal) => (session.compactions > 0 ? covers(key, signal) : new Map()), [key, session.epoch])
  const set = (changes) => go(sessionLink(key, 'compare', { ...query, ...changes }), { replace: true })
  const windows = two.data && two.data.map((answer, i) => read(answer, budgets[i] || session.tokenBudget || defaultBudget, made.data, before))
  return html`
    ${a && b && html`<${Controls} head=${head} a=${a} b=${b} query=${query} set=${set} steps=${known.data?.steps ?? []} />`}
    <${Failure} error=${known.error ?? two.error} retry=${known.error ? known.reload : two.reload} />
    ${!windows ? !(known.error || two.error) && html`<${Waiting} />` : html`
      <div class=${'two' + (two.loading ? ' stale' : '')}>
        ${windows.map((w, i) => html`<section key=${i}><h3>${'AB'[i]}: as of seq ${number(w.head)} <span class="dim">epoch ${w.epoch}, ${plural(w.rows.length, 'message')}</span></h3><${Shares} window=${w} /></section>`)}
      </div>
      <${Lines} lines=${compare(windows[0], windows[1])} of=${{ sessionKey: key, before }} />`}`
}

function Controls({ head, a, b, query, set, steps: known }) {
  const [from, setFrom] = useDraft(a, (n) => set({ a: n }), 400)
  const [to, setTo] = useDraft(b, (n) => set({ b: n }), 400)
  const [budgetA, setBudgetA] = useDraft(query.budgetA ?? query.budget ?? '', (v) => set({ budgetA: v, budget: undefined }), 400)
  const [budgetB, setBudgetB] = useDraft(query.budgetB ?? query.budget ?? '', (v) => set({ budgetB: v, budget: undefined }), 400)
  const place = (put) => (e) => { const n = Math.round(Number(e.target.value)); if (n >= 1) put(Math.min(n, head)) }
  const around = (e) => { const n = Number(e.target.value); if (n) set({ a: n - 1, b: n }) }
  return html`
    <form class="controls" onSubmit=${(e) => e.preventDefault()}>
      <${Field} label="A: as of seq"><input type="number" min="1" max=${head} value=${from} onInput=${place(setFrom)} /><//>
      <${Field} label="budget of A"><input type="number" min="1" value=${budgetA} onInput=${(e) => setBudgetA(e.target.value)} placeholder="its own" /><//>
      <${Field} label="B: as of seq"><input type="number" min="1" max=${head} value=${to} onInput=${place(setTo)} /><//>
      <${Field} label="budget of B"><input type="number" min="1" value=${budgetB} onInput=${(e) => setBudgetB(e.target.value)} placeholder="its own" /><//>
      <${Field} label="Before and after">
        <select value="" onChange=${around}><option value="">an epoch…</option>
          ${known.map((s) => html`<option value=${s.seq}>${`epoch ${s.epoch}: ${s.cause}, seq ${s.seq}`}</option>`)}</select><//>
    </form>`
}

function Lines({ lines, of: session }) {
  const which = (op) => lines.filter((l) => l.op === op)
  const tokens = (list) => list.reduce((n, l) => n + l.row.tokens, 0)
  const largest = Math.max(...lines.map((l) => l.row.tokens), 1)
  if (lines.length === 0) return html`<${Empty}>Both windows are empty.<//>`
  return html`
    <p class="tally">
      ${['left', 'came', 'changed', 'stayed'].filter((op) => which(op).length > 0).map((op) => html`<span class=${'op-' + op}><span class="op">${op}</span> <b class="num">${number(which(op).length)}</b> <span class="dim">${plural(tokens(which(op)), 'token')}</span></span>`)}
    </p>
    <section class="rows" aria-label="Differences">
      ${runsOf(lines).map((run) => run.op === 'stayed' && run.lines.length > 3
        ? html`<${Stayed} key=${'s' + run.lines[0].row.seq} lines=${run.lines} of=${session} largest=${largest} />`
        : html`<${Some} key=${run.op + run.lines[0].row.seq} lines=${run.lines} of=${session} largest=${largest} />`)}
    </section>`
}

const step = 100

function Some({ lines, of: session, largest }) {
  const [most, setMost] = useState(step)
  return html`
    ${lines.slice(0, most).map((l) => html`<${WindowRow} key=${l.op + l.row.seq} row=${l.row} op=${l.op} ...${session} largest=${largest} />`)}
    ${lines.length > most && html`<button class="fold" onClick=${() => setMost(most + step)}>… ${number(lines.length - most)} more that ${lines[0].op}</button>`}`
}

// Stayed folds what both windows show: it is what nobody looks for here.
function Stayed({ lines, of: session, largest }) {
  const [open, setOpen] = useState(false)
  return html`
    <button class="fold" aria-expanded=${open} onClick=${() => setOpen(!open)}>… ${plural(lines.length, 'message')} in both, ${plural(lines.reduce((n, l) => n + l.row.tokens, 0), 'token')}</button>
    ${open && html`<${Some} lines=${lines} of=${session} largest=${largest} />`}`
}

function runsOf(lines) {
  const runs = []
  for (const l of lines) {
    const last = runs[runs.length - 1]
    if (last?.op === l.op) last.lines.push(l)
    else runs.push({ op: l.op, lines: [l] })
  }
  return runs
}
