import { html, useState } from '../lib/html.js'
import { post, path } from '../lib/api.js'
import { logLink, sessionLink } from '../lib/route.js'
import { useLoad } from '../lib/load.js'
import { steps, inForce } from '../lib/find.js'
import { number, plural, money, percent } from '../lib/format.js'
import { covered, own } from '../lib/places.js'
import { visible } from '../lib/visible.js'
import { Line } from '../ui/text.js'
import { Failure, Waiting, Empty, Mark, Facts, Time, Field } from '../ui/small.js'
import { useConfirm } from '../ui/confirm.js'

// Compaction shows what one would do, does it, takes it back, and tells of all
// that were.
export function Compaction({ session, changed, before }) {
  const key = session.sessionKey
  const [force, setForce] = useState(false)
  const [instructions, setInstructions] = useState('')
  const [said, setSaid] = useState(null)
  const [dialog, ask] = useConfirm()
  const preview = useLoad((signal) => post(path(key, 'compact'), { dryRun: true, force: force || undefined }, signal), [key, session.epoch, session.head, force])
  const history = useLoad((signal) => steps(key, session.head, signal), [key, session.epoch])
  // Between an act and its news nobody knows what the next one would do.
  const known = (said?.epoch ?? 0) <= session.epoch && history.data !== undefined &&
    (session.epoch === 1 || history.data.steps[0]?.epoch === session.epoch)
  const newest = known && inForce(history.data.steps)
  const act = { session, force, instructions, say: (result) => { setSaid(result); changed() } }
  return html`
    ${said && html`<${Said} of=${said} />`}
    <section class="panel">
      <div class="panelhead"><h3>What a compaction would do now</h3>
        <label class="check"><input type="checkbox" checked=${force} onChange=${(e) => setForce(e.target.checked)} /> even under the threshold</label></div>
      <${Failure} error=${preview.error} retry=${preview.reload} />
      ${!preview.data ? !preview.error && html`<${Waiting} />` : html`<div class=${preview.loading ? 'stale' : ''}><${Plan} of=${preview.data} sessionKey=${key} before=${before} /></div>`}
    </section>
    <section class="panel">
      <h3>Act</h3>
      <${Field} label="Instructions for the summaries (at most 800 characters; models follow them, the extractive rule does not)">
        <textarea rows="2" maxlength="800" value=${instructions} onInput=${(e) => setInstructions(e.target.value)} /><//>
      <div class="buttons start">
        <button class="primary" disabled=${!known} onClick=${() => ask(compacting(act))}>Compact…</button>
        <button disabled=${!newest} onClick=${() => ask(redoing(act, newest))}>Compact again…</button>
        <button disabled=${!newest} onClick=${() => ask(undoing(act, newest))}>Undo the last compaction…</button>
      </div>
    </section>
    <section class="panel">
      <h3>Epochs</h3>
      <${Failure} error=${history.error} retry=${history.reload} />
      ${history.data && html`<${Epochs} of=${history.data} sessionKey=${key} />`}
    </section>
    ${session.attempts.length > 0 && html`<section class="panel"><h3>Newest tries of workers</h3><${Attempts} of=${session.attempts} /></section>`}
    ${dialog}`
}

function Said({ of: r }) {
  const kind = r.ok === false ? 'failure' : 'notice'
  return html`<div class=${kind} role="status"><strong>${r.title}</strong> <span>${visible(r.text)}</span></div>`
}

function Plan({ of: r, sessionKey, before }) {
  const [all, setAll] = useState(false)
  if (!r.result) return html`<${Empty}>${visible(r.reason || 'Nothing to do.')}<//>`
  const d = r.result.details ?? {}
  const planned = d.steps ?? []
  return html`
    <${Facts} of=${[
      ['window', html`<b class="num">${number(r.result.tokensBefore)}</b> → at most <b class="num">${number(r.result.tokensAfter)}</b> tokens <span class="dim">${percent(r.result.tokensAfter, r.result.tokensBefore)}</span>`],
      ['summaries', number(planned.length)], ['calls of a summarizer', d.calls !== undefined && number(d.calls)], ['rounds', d.rounds && number(d.rounds)],
      ['tokens in / out', d.inputTokens && `${number(d.inputTokens)} / ${number(d.outputTokens)}`],
      ['cost', d.estimatedCostMicros ? money(d.estimatedCostMicros) : html`<span class="dim">none, or no price is set</span>`],
      ['first message kept', firstKept(r.result.firstKeptEntryId, sessionKey)],
    ]} />
    ${planned.length > 0 && html`
      <div class="tablewrap"><table>
        <thead><tr><th class="num">Level</th><th>Of</th><th class="num">Tokens</th><th class="num">At most</th></tr></thead>
        <tbody>${planned.slice(0, all ? 500 : 8).map((s) => html`
          <tr><td class="num" data-name="level">${s.level}</td><td data-name="of"><${Covers} of=${s.covers} sessionKey=${sessionKey} before=${before} /></td>
            <td class="num" data-name="tokens">${number(s.sourceTokens)}</td><td class="num" data-name="at most">${number(s.maxTokens)}</td></tr>`)}</tbody>
      </table></div>
      ${planned.length > 8 && html`<button class="quiet" onClick=${() => setAll(!all)}>${all ? 'Show the first' : `Show all ${number(planned.length)}`}</button>`}`}`
}

function Covers({ of: covers, sessionKey, before }) {
  const first = own(covers, before)[0]
  return first ? html`<a href=${logLink(sessionKey, first.from)}>${covered(covers, before, 6)}</a>` : covered(covers, before)
}

// firstKept is a seq, or the host's own name of the entry.
const firstKept = (id, sessionKey) => id && (/^\d+$/.test(id) ? html`<a href=${logLink(sessionKey, id)}>${id}</a>` : html`<${Line} text=${id} most=${60} />`)

function Epochs({ of: { steps: list, all }, sessionKey }) {
  if (list.length === 0) return html`<${Empty}>Still the first: no compaction, reset, rewind or undo so far.<//>`
  return html`
    <div class="tablewrap"><table>
      <thead><tr><th class="num">Epoch</th><th>Began by</th><th class="num">Tokens</th><th class="num">Summaries</th><th>At seq</th><th>When</th><th></th></tr></thead>
      <tbody>${list.map((s) => html`
        <tr key=${s.epoch}><td class="num" data-name="epoch">${s.epoch}</td>
          <td data-name="began by"><span class=${'cause cause-' + s.cause.replace(/\W/g, '')}>${s.cause}</span>${s.cause === 'undo' && s.base !== undefined && html` <span class="dim">back to epoch ${s.base}</span>`}${s.reason && html` <${Line} text=${s.reason} most=${80} class="dim" />`}</td>
          <td class="num" data-name="tokens">${s.before ? `${number(s.before)} → ${number(s.after)}` : html`<span class="dim">–</span>`}</td>
          <td class="num" data-name="summaries">${s.live ?? html`<span class="dim">–</span>`}</td>
          <td data-name="at seq"><a href=${logLink(sessionKey, s.seq)}>${s.seq}</a></td>
          <td class="dim" data-name="when"><${Time} at=${s.at} /></td>
          <td><a href=${sessionLink(sessionKey, 'compare', { a: s.seq - 1, b: s.seq })}>before / after</a></td></tr>`)}</tbody>
    </table></div>
    ${!all && html`<p class="dim">Older ones are in the <a href=${sessionLink(sessionKey, 'log', { show: 'epochs' })}>log</a>.</p>`}`
}

const Attempts = ({ of: list }) => html`
  <div class="tablewrap"><table>
    <thead><tr><th>When</th><th class="num">Epoch</th><th>Outcome</th><th>Worker</th></tr></thead>
    <tbody>${list.map((t) => html`
      <tr><td class="dim" data-name="when"><${Time} at=${t.endedAt} /></td><td class="num" data-name="epoch">${t.epoch}</td>
        <td data-name="outcome"><${Mark} kind=${t.error ? 'bad' : ''}>${visible(t.outcome)}<//> ${t.error && html`<${Line} text=${t.error} />`}</td>
        <td data-name="worker"><${Line} text=${t.worker} most=${60} class="dim" /></td></tr>`)}</tbody>
  </table></div>`

const outcome = (say, r) => say(r.compacted
  ? { ok: true, epoch: r.epoch, title: 'Compacted.', text: `${number(r.result.tokensBefore)} → ${number(r.result.tokensAfter)} tokens, epoch ${r.epoch}.` }
  : { ok: r.ok, title: 'Not compacted.', text: r.reason ?? '' })

const wish = ({ session, force, instructions }, more) => ({
  force: force || undefined, customInstructions: instructions || undefined, expectedEpoch: session.epoch, ...more,
})

const compacting = (act) => ({
  title: 'Compact this session?', action: 'Compact',
  children: html`<p>The oldest messages of the window are replaced by summaries and epoch ${act.session.epoch + 1} begins, ${act.force ? 'even under the threshold' : 'if the threshold is passed'}.
    The log keeps every message, and the compaction can be undone. Providers cache the new window anew.</p>`,
  run: async () => outcome(act.say, await post(path(act.session.sessionKey, 'compact'), wish(act))),
})

const redoing = (act, newest) => ({
  title: 'Compact again?', action: 'Undo and compact',
  children: html`<p>The compaction of epoch ${newest.epoch} is undone and done again with the summarizers and instructions of now: epochs ${act.session.epoch + 1} and ${act.session.epoch + 2}.
    Should the second step fail, the window is that of before epoch ${newest.epoch} until the next compaction.</p>`,
  run: async () => {
    const back = await post(path(act.session.sessionKey, 'undo-compaction'), { expectedEpoch: act.session.epoch })
    outcome(act.say, await post(path(act.session.sessionKey, 'compact'), wish(act, { force: true, expectedEpoch: back.epoch })))
  },
})

const undoing = (act, newest) => ({
  title: 'Undo the last compaction?', action: 'Undo',
  children: html`<p>The ${plural(newest.live ?? 0, 'summary', 'summaries')} of epoch ${newest.epoch} give way to those from before it, as epoch ${act.session.epoch + 1}; newer messages stay.${' '}
    ${newest.before && `The window was ${number(newest.before)} tokens then and may be larger than its budget again: its oldest messages are then left out.`}${' '}
    Automatic compaction waits until the session has grown.</p>`,
  run: async () => {
    const r = await post(path(act.session.sessionKey, 'undo-compaction'), { expectedEpoch: act.session.epoch })
    act.say({ ok: true, epoch: r.epoch, title: 'Undone.', text: `Epoch ${r.epoch} has the summaries from before epoch ${newest.epoch}.` })
  },
})
