import { html, useState } from '../lib/html.js'
import { parts } from '../lib/message.js'
import { rawMessage } from '../lib/raw.js'
import { useLoad } from '../lib/load.js'
import { size } from '../lib/format.js'
import { visible } from '../lib/visible.js'
import { Text } from './text.js'
import { Failure, Waiting } from './small.js'

const titles = { reasoning: 'Reasoning', call: 'Calls', result: 'Result', image: 'Image', other: 'As JSON' }

// Message is all that a message says, part by part.
export function Message({ of: message }) {
  const all = parts(message)
  if (all.length === 0) return html`<p class="dim">Nothing in it that people or models read.</p>`
  return all.slice(0, 200).map((p) => html`
    <div class=${'part part-' + p.kind}>
      ${titles[p.kind] && html`<h4>${titles[p.kind]} ${p.name && html`<bdi class="key">${visible(String(p.name))}</bdi>`} ${p.failed && html`<span class="mark bad">failed</span>`}
        ${p.id && html`<bdi class="dim id">${visible(String(p.id).slice(0, 80))}</bdi>`}</h4>`}
      <${Text} text=${p.text} />
    </div>`)
    .concat(all.length > 200 ? html`<p class="dim">and ${all.length - 200} more parts; its bytes have them all.</p>` : [])
}

// Raw are the bytes as they were sent, with a way to keep them.
export function Raw({ sessionKey, seq }) {
  const { data, error } = useLoad((signal) => rawMessage(sessionKey, seq, signal), [sessionKey, seq])
  const [copied, setCopied] = useState(false)
  if (error) return html`<${Failure} error=${error} />`
  if (!data) return html`<${Waiting} />`
  const text = new TextDecoder().decode(data)
  const copy = async () => { await navigator.clipboard.writeText(text); setCopied(true) }
  const save = () => {
    const url = URL.createObjectURL(new Blob([data], { type: 'application/octet-stream' }))
    const a = document.createElement('a')
    a.href = url
    a.download = `message-${seq}.json`
    a.click()
    setTimeout(() => URL.revokeObjectURL(url), 10_000)
  }
  return html`
    <div class="raw">
      <div class="rawhead"><span class="dim">${size(data.length)} as stored</span>
        ${navigator.clipboard && html`<button class="quiet" onClick=${copy}>${copied ? 'Copied' : 'Copy'}</button>`}
        <button class="quiet" onClick=${save}>Save</button></div>
      <${Text} text=${text} label="stored bytes" />
    </div>`
}
