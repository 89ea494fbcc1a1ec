import { html, useState } from '../lib/html.js'
import { line } from '../lib/message.js'
import { logLink, sessionLink } from '../lib/route.js'
import { number } from '../lib/format.js'
import { covered } from '../lib/places.js'
import { Line } from './text.js'
import { Message, Raw } from './message.js'
import { Role } from './small.js'

// told is what a summary tells, without the notice that all begin with.
const told = (message) => line(message, 1200).replace(/^(<summary>)?\s*Machine-made summary[^#]*/, '')

// WindowRow is a message of a window: who, how large, why it is there, what it says.
export function WindowRow({ row, sessionKey, largest, op, before = 0 }) {
  const [open, setOpen] = useState(false)
  const [raw, setRaw] = useState(false)
  const summary = row.kind === 'summary'
  const owner = row.sessionKey ?? sessionKey // an ancestor's, where it was inherited
  const href = summary ? sessionLink(owner, 'summaries', { id: row.place ?? row.seq }) : logLink(owner, row.seq)
  return html`
    <article class=${'event wrow' + (summary ? ' summary' : '') + (op ? ' op-' + op : '')} data-seq=${row.seq}>
      <div class="eventhead">
        ${row.seq ? html`<a class="seq" href=${href} title=${summary ? 'This summary in the tree' : 'This message in the log'}>${row.seq}</a>` : html`<span class="seq" />`}
        <button class="opener" aria-expanded=${open} onClick=${() => setOpen(!open)}>
          ${op && html`<span class="op">${op}</span>`}
          <${Role} of=${summary ? 'summary' : String(row.message?.role ?? 'unknown').slice(0, 24)} />
          <${Line} text=${summary ? told(row.message) : line(row.message)} class="clamp" />
          ${row.reason && html`<small class="why">${row.covers ? `stands for ${covered(row.covers, before)}` : row.reason}</small>`}
        </button>
        <span class="weight" aria-hidden="true"><span style=${{ width: (100 * row.tokens) / largest + '%' }} /></span>
        <span class="num tokens" title="tokens by estimate">${number(row.tokens)}</span>
      </div>
      ${open && html`
        <div class="eventbody">
          <${Message} of=${row.message} />
          ${!summary && row.seq > 0 && html`<div class="eventfoot"><button class="quiet" aria-expanded=${raw} onClick=${() => setRaw(!raw)}>${raw ? 'Hide bytes' : 'Bytes in the log'}</button></div>`}
          ${raw && html`<${Raw} sessionKey=${owner} seq=${row.seq} />`}
        </div>`}
    </article>`
}
