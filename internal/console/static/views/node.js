import { html } from '../lib/html.js'
import { get, erase, ready } from '../lib/api.js'
import { useLoad, useEvery } from '../lib/load.js'
import { number, plural, money, when } from '../lib/format.js'
import { visible } from '../lib/visible.js'
import { Line } from '../ui/text.js'
import { Failure, Waiting, Empty, Mark, Facts, Time } from '../ui/small.js'
import { useConfirm } from '../ui/confirm.js'

// Node is the node that answers this page: behind a balancer it may be another
// one with each call.
export function Node() {
  const health = useLoad((signal) => get('/healthz', {}, signal), [])
  const checks = useLoad(ready, [])
  const owed = useLoad(debts, [])
  const engines = useLoad((signal) => get('/v1/engines', {}, signal), [])
  const models = useLoad((signal) => get('/v1/summarizers', {}, signal), [])
  const all = [health, checks, owed, engines, models]
  useEvery(5000, () => all.forEach((x) => x.reload()))
  const [dialog, ask] = useConfirm()
  return html`
    <div class="viewhead"><h1>Node</h1>
      ${health.data && html`<span class="dim">engined ${health.data.version}</span>`}
      <nav class="aside"><a href="/docs">API</a> <a href="/metrics">Metrics</a></nav></div>
    <${Panel} title="Ready" load=${checks}>${(r) => html`
      <p>${r.ready ? html`<${Mark} kind="good">ready<//>` : html`<${Mark} kind="bad">not ready<//>`}</p>
      <ul class="checks">${r.checks.map((c) => html`
        <li key=${c.name}><${Mark} kind=${c.ok ? 'good' : c.required ? 'bad' : 'warn'}>${c.ok ? 'ok' : 'away'}<//> <b>${c.name}</b>
          <span class="dim">${c.required ? 'needed' : 'the node serves without it'}</span> ${c.detail && visible(c.detail)}</li>`)}</ul>`}<//>
    <${Panel} title="Owed" load=${owed}>${(o) => html`
      <${Facts} of=${[
        ['compactions', plural(o.compactions, 'session')],
        ['oldest of them', o.compactions > 0 && `${number(Math.round(o.oldest))} s`],
        ['summaries that a model is to write anew', o.redo > 0 && plural(o.redo, 'session')],
        ['search index behind by', plural(o.searchLag, 'event')],
      ]} /><p class="dim">Of all tenants and nodes. Sessions that owe something have a debt in the <a href="#/sessions">list</a>.</p>`}<//>
    <${Panel} title="Engines" load=${engines}>${(e) => html`<${Engines} of=${e} ask=${ask} reload=${engines.reload} />`}<//>
    <${Panel} title="Summarizers" load=${models}>${(m) => html`<${Summarizers} of=${m} />`}<//>
    ${dialog}`
}

function Panel({ title, load, children }) {
  return html`
    <section class="panel"><h3>${title}</h3>
      <${Failure} error=${load.error} />
      ${load.data ? children(load.data) : !load.error && html`<${Waiting} />`}
    </section>`
}

// debts reads the few of the node's metrics that say what is owed.
async function debts(signal) {
  const answer = await fetch('/metrics', { signal, credentials: 'omit' })
  if (!answer.ok) throw Object.assign(new Error('no metrics'), { title: 'The metrics cannot be read', detail: `HTTP ${answer.status}` })
  const text = await answer.text()
  const of = (name) => Number(text.match(new RegExp(`^engined_${name}(?:\\{[^}]*\\})? (\\S+)`, 'm'))?.[1] ?? 0)
  return { compactions: of('compactions_owed'), oldest: of('compactions_owed_oldest_seconds'), redo: of('summarizer_redo_owed'), searchLag: of('search_lag_events') }
}

function Engines({ of: e, ask, reload }) {
  return html`
    <ul class="checks">${e.engines.map((x) => html`
      <li key=${x.id}><b>${visible(x.name)}</b> <code>${visible(x.id)}</code> ${x.version && html`<span class="dim">${visible(x.version)}</span>`}
        ${x.id === e.serving && html`<${Mark} kind="good">serves<//>`}
        ${x.slot && x.id !== e.serving && html`<${Mark} kind="warn">chosen, set aside<//>`}
        ${x.ownsCompaction && html`<span class="dim">compacts itself</span>`}</li>`)}</ul>
    ${e.quarantines.length > 0 && html`<h4>Set aside on this node</h4>
      <ul class="checks">${e.quarantines.map((q) => html`
        <li key=${q.engineId}><${Mark} kind="bad">${visible(q.engineId)}<//> in <code>${visible(q.operation)}</code> <${Time} at=${q.failedAt} />: <${Line} text=${q.reason} />
          <button onClick=${() => ask(clearing(q, reload))}>Give it another chance…</button></li>`)}</ul>`}`
}

const clearing = (q, reload) => ({
  title: 'Give the engine another chance?', action: 'Clear the quarantine',
  children: html`<p>The next call on this node makes a new instance of <code>${visible(q.engineId)}</code>. Should it break the contract again, it is set aside again and the default engine answers; no turn is lost.</p>`,
  run: async () => { await erase(`/v1/engines/${encodeURIComponent(q.engineId)}/quarantine`); reload() },
})

function Summarizers({ of: { summarizers, spend } }) {
  return html`
    ${summarizers.length === 0
      ? html`<${Empty}>None is set: the built-in extractive rule writes, without a model.<//>`
      : html`<div class="tablewrap"><table>
        <thead><tr><th>Name</th><th>Model</th><th>Breaker</th><th class="num">Calls today</th><th class="num">Tokens in / out</th><th class="num">Cost today</th></tr></thead>
        <tbody>${summarizers.map((s) => html`
          <tr key=${s.name}><td data-name="name">${visible(s.name)} <span class="dim">${s.kind}</span></td><td data-name="model"><${Line} text=${s.model ?? '–'} most=${60} /></td>
            <td data-name="breaker"><${Mark} kind=${s.state === 'closed' ? 'good' : s.state === 'open' ? 'bad' : 'warn'}>${s.state}<//>
              ${s.openUntil && html` <span class="dim">until ${when(s.openUntil)}</span>`}${s.lastError && html` <${Line} text=${s.lastError} most=${120} class="dim" />`}</td>
            <td class="num" data-name="calls">${number(s.today.calls)}${s.today.failed > 0 && html` <${Mark} kind="warn">${number(s.today.failed)} failed<//>`}</td>
            <td class="num" data-name="tokens">${number(s.today.inputTokens)} / ${number(s.today.outputTokens)}</td>
            <td class="num" data-name="cost">${money(s.today.costMicros)}${s.dailyLimitMicros && html` <span class="dim">of ${money(s.dailyLimitMicros)}</span>`}</td></tr>`)}</tbody>
      </table></div>`}
    ${spend && html`<${Facts} of=${[['spent today', money(spend.costMicros)], ['limit', spend.limitMicros && money(spend.limitMicros)], ['counts anew', when(spend.resetsAt)]]} />`}`
}
