import { html, useState, useEffect, useRef } from '../lib/html.js'
import { eventLine, messageType } from '../lib/event.js'
import { logLink, sessionLink } from '../lib/route.js'
import { number } from '../lib/format.js'
import { Line, Text, SessionKey } from './text.js'
import { Message, Raw } from './message.js'
import { Time, Role, Facts } from './small.js'

// EventRow is an event in one line; opened, all of it. With `session` it also
// says whose it is.
export function EventRow({ event, session, marked }) {
  const [open, setOpen] = useState(!!marked)
  const row = useRef()
  useEffect(() => {
    if (!marked) return
    setOpen(true)
    row.current.scrollIntoView({ block: 'center' })
  }, [marked])
  const isMessage = event.type === messageType
  return html`
    <article ref=${row} class=${'event' + (marked ? ' marked' : '') + (isMessage ? '' : ' step')} data-seq=${event.seq}>
      <div class="eventhead">
        <a class="seq" href=${logLink(event.sessionKey, event.seq)} title="Link to this event">${event.seq}</a>
        <button class="opener" aria-expanded=${open} onClick=${() => setOpen(!open)}>
          <${Role} of=${isMessage ? event.role : event.type} />
          ${session && html`<span class="whose"><${SessionKey} of=${event.sessionKey} /></span>`}
          <${Line} text=${eventLine(event)} class="clamp" />
        </button>
        <span class="num dim tokens">${event.tokens ? number(event.tokens) : ''}</span>
        <span class="dim at"><${Time} at=${event.recordedAt} /></span>
      </div>
      ${open && html`<${EventBody} event=${event} session=${session} />`}
    </article>`
}

function EventBody({ event, session }) {
  const [raw, setRaw] = useState(false)
  return html`
    <div class="eventbody">
      ${event.type === messageType ? html`<${Message} of=${event.message} />` : html`<${Text} text=${JSON.stringify(event.data, null, 2) ?? ''} />`}
      <div class="eventfoot">
        <${Facts} of=${[
          ['session', session && html`<a href=${sessionLink(event.sessionKey)}><${SessionKey} of=${event.sessionKey} /></a>`],
          ['epoch', event.epoch],
          ['follows', event.parentSeq && html`<a href=${logLink(event.sessionKey, event.parentSeq)}>${event.parentSeq}</a>`],
          ['heartbeat', event.isHeartbeat && 'yes'],
          ['gateway', event.gatewayId && html`<${Line} text=${event.gatewayId} most=${80} />`],
          ['host session', event.sessionId && html`<${Line} text=${event.sessionId} most=${80} />`],
        ]} />
        <button class="quiet" aria-expanded=${raw} onClick=${() => setRaw(!raw)}>${raw ? 'Hide bytes' : 'Bytes'}</button>
      </div>
      ${raw && html`<${Raw} sessionKey=${event.sessionKey} seq=${event.seq} />`}
    </div>`
}
