import { html } from '../lib/html.js'
import { get } from '../lib/api.js'
import { go, link, sessionLink } from '../lib/route.js'
import { useLoad, useEvery, useDraft } from '../lib/load.js'
import { brief, number } from '../lib/format.js'
import { useDefaultBudget } from '../lib/budget.js'
import { SessionKey } from '../ui/text.js'
import { Failure, Waiting, Empty, Fullness, Time, Mark } from '../ui/small.js'

const rows = 50

export function Sessions({ query }) {
  // A new filter begins at its first page; a page of a shared link stays.
  const [filter, setFilter] = useDraft(query.key ?? '', (key) => go(link(['sessions'], { key }), { replace: true }))
  const { data, error, loading, reload } = useLoad(
    (signal) => get('/v1/sessions', { keyContains: query.key, after: query.after, limit: rows }, signal), [query.key, query.after])
  const budget = useDefaultBudget()
  useEvery(5000, reload)
  return html`
    <div class="viewhead">
      <h1>Sessions</h1>
      <label class="filter"><span class="unseen">Filter by key</span>
        <input type="search" value=${filter} onInput=${(e) => setFilter(e.target.value)} placeholder="Filter by key" spellcheck=${false} /></label>
    </div>
    <${Failure} error=${error} retry=${reload} />
    ${!data ? loading && html`<${Waiting} />` : data.sessions.length === 0 ? html`<${Nothing} query=${query} />` : html`
      <div class="tablewrap">
        <table class="sessions">
          <thead><tr><th>Key</th><th class="num">Head</th><th class="num">Epoch</th><th>Tokens of the budget</th><th class="num">Debt</th><th>Last change</th></tr></thead>
          <tbody>
            ${data.sessions.map((s) => html`
              <tr key=${s.sessionKey}>
                <td class="keycell"><a href=${sessionLink(s.sessionKey)}><${SessionKey} of=${s.sessionKey} /></a></td>
                <td class="num" data-name="head">${number(s.head)}</td>
                <td class="num" data-name="epoch">${number(s.epoch)}</td>
                <td data-name="tokens"><${Fullness} tokens=${s.tokens} budget=${s.tokenBudget || budget} /></td>
                <td class="num" data-name="debt">${s.debt ? html`<${Mark} kind="warn" title=${number(s.debt) + ' tokens wait for a compaction'}>${brief(s.debt)}<//>` : html`<span class="dim">–</span>`}</td>
                <td class="dim" data-name="changed"><${Time} at=${s.updatedAt} /></td>
              </tr>`)}
          </tbody>
        </table>
      </div>
      <nav class="pager" aria-label="Pages">
        ${query.after && html`<a class="button" href=${link(['sessions'], { key: query.key })}>First page</a>`}
        ${data.next && html`<a class="button" href=${link(['sessions'], { key: query.key, after: data.next })}>Next page</a>`}
      </nav>`}`
}

function Nothing({ query }) {
  if (query.after) return html`<${Empty}>No more sessions. <a href=${link(['sessions'], { key: query.key })}>First page</a><//>`
  if (query.key) return html`<${Empty}>No session has this in its key.<//>`
  return html`<${Empty}>No sessions yet. Gateways open them with their first message; <code>engined import FILE…</code> takes transcripts over.<//>`
}
