import { html, useEffect } from '../lib/html.js'
import { get, erase, path } from '../lib/api.js'
import { go, link, sessionLink } from '../lib/route.js'
import { useLoad, useEvery } from '../lib/load.js'
import { inherited } from '../lib/places.js'
import { useDefaultBudget } from '../lib/budget.js'
import { number, plural } from '../lib/format.js'
import { visible } from '../lib/visible.js'
import { SessionKey, Line } from '../ui/text.js'
import { Failure, Waiting, Fullness, Time, Mark, Facts } from '../ui/small.js'
import { useConfirm } from '../ui/confirm.js'
import { Window } from './window.js'
import { Compare } from './compare.js'
import { Log } from './log.js'
import { Summaries } from './summaries.js'
import { Compaction } from './compaction.js'

const tabs = { window: ['Window', Window], compare: ['Compare', Compare], log: ['Log', Log], summaries: ['Summaries', Summaries], compaction: ['Compaction', Compaction] }

export function Session({ sessionKey, tab, query }) {
  const { data: session, error, reload } = useLoad((signal) => get(path(sessionKey), {}, signal), [sessionKey])
  const budget = useDefaultBudget()
  const descends = session?.lineage.parent ? 'yes' : session && 'no'
  const before = useLoad((signal) => session && inherited(session, signal), [sessionKey, descends])
  useEvery(3000, reload)
  useEffect(() => {
    document.title = `${visible(sessionKey)} · engined`
    return () => { document.title = 'engined' }
  }, [sessionKey])
  const [dialog, ask] = useConfirm()
  const Tab = tabs[tab]?.[1] ?? Window
  return html`
    <div class="viewhead">
      <h1><${SessionKey} of=${sessionKey} /></h1>
      ${session && html`<button class="quiet danger" onClick=${() => ask(erasing(session))}>Erase…</button>`}
    </div>
    <${Failure} error=${error} retry=${reload} />
    ${error?.status === 404 && html`<p><a href=${link([])}>All sessions</a></p>`}
    ${!session && !error && html`<${Waiting} />`}
    <${Failure} error=${before.error} retry=${before.reload} />
    ${session && before.data !== undefined && html`
      <${SessionFacts} session=${session} budget=${session.tokenBudget || budget} />
      <nav class="tabs" aria-label="Of this session">
        ${Object.entries(tabs).map(([name, [title]]) => html`
          <a href=${sessionLink(sessionKey, name)} aria-current=${Tab === tabs[name][1] ? 'page' : undefined}>${title}</a>`)}
      </nav>
      <${Tab} key=${tab} session=${session} defaultBudget=${budget} before=${before.data} query=${query} changed=${reload} />`}
    ${dialog}`
}

function SessionFacts({ session: s, budget }) {
  const { parent, children } = s.lineage
  return html`<${Facts} of=${[
    ['window', html`<${Fullness} tokens=${s.tokens} budget=${budget} />`],
    ['debt', s.debt > 0 && html`<${Mark} kind="warn">${plural(s.debt, 'token')}<//>`],
    ['head', number(s.head)],
    ['epoch', number(s.epoch)],
    ['compactions', number(s.compactions)],
    ['dialect', s.dialect],
    ['changed', html`<${Time} at=${s.updatedAt} />`],
    ['created', html`<${Time} at=${s.createdAt} />`],
    ['gateway', s.gatewayId && html`<${Line} text=${s.gatewayId} most=${80} />`],
    ['host session', s.hostSessionId && html`<${Line} text=${s.hostSessionId} most=${80} />`],
    [parent?.kind === 'subagent' ? 'sub-agent of' : 'fork of', parent && html`<${Relative} of=${parent} />`],
    ['descendants', children.length > 0 && html`
      <details><summary>${number(children.length)}</summary><ul class="plain">${children.map((c) => html`<li><${Relative} of=${c} /></li>`)}</ul></details>`],
  ]} />`
}

function Relative({ of: r }) {
  const name = r.sessionKey
  return html`${name ? html`<a href=${sessionLink(name)}><${SessionKey} of=${name} /></a>` : html`<span class="dim">an erased session</span>`}
    <span class="dim"> ${r.kind === 'subagent' ? 'sub-agent' : 'fork'} at seq ${number(r.atSeq)}${r.endedAt ? `, ended: ${visible(r.endReason ?? '')}` : ''}</span>`
}

const erasing = (s) => ({
  title: 'Erase this session?', action: 'Erase for good', danger: true, typed: s.sessionKey,
  children: html`<p>Its ${plural(s.head, 'event')}, summaries, windows and search entries are deleted and cannot be brought back.${' '}
    ${s.lineage.children.length > 0 && `What ${plural(s.lineage.children.length, 'descendant')} inherited from it goes too.`}${' '}
    A host that writes to this key again is refused, unless its host session is a new one.</p>`,
  run: async () => {
    await erase(path(s.sessionKey))
    go(link(['sessions']))
  },
})
