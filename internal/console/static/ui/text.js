import { html, useState } from '../lib/html.js'
import { visible, head, pieces } from '../lib/visible.js'
import { size } from '../lib/format.js'

const pieceLength = 8192

// Text shows what someone else wrote: its beginning, and all of it on demand.
// The pieces of a long one are laid out as they come into view.
export function Text({ text, most = 4096, label = 'text' }) {
  const [all, setAll] = useState(false)
  const short = text.length > most && !all
  return html`
    <div class="text">
      ${short || text.length <= pieceLength
        ? html`<div class="said">${visible(short ? head(text, most) : text)}${short && '…'}</div>`
        : html`<div class="said long" tabindex="0" aria-label=${label}>${pieces(text, pieceLength).map((p) => html`<div class="piece">${visible(p)}</div>`)}</div>`}
      ${text.length > most && html`
        <button class="quiet" onClick=${() => setAll(!all)}>${all ? 'Show its beginning' : `Show all (${size(text.length)})`}</button>`}
    </div>`
}

// Line is a text within a line of ours: bounded, and kept from turning it around.
export const Line = ({ text, most = 300, class: name = '' }) =>
  html`<bdi class=${'line ' + name}>${visible(head(text, most))}${text.length > most && '…'}</bdi>`

// SessionKey may be cut by the layout; the whole of it is in its title.
export const SessionKey = ({ of }) => html`<bdi class="key" title=${visible(of)}>${visible(of)}</bdi>`
