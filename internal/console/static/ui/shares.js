import { html } from '../lib/html.js'
import { number, percent } from '../lib/format.js'

const names = { addition: 'system addition', summaries: 'summaries', messages: 'messages', over: 'over budget', free: 'free' }

// Shares is a window's tokens as one bar, with the same in numbers.
export function Shares({ window: w }) {
  const all = Math.max(w.budget, w.total, 1)
  const { over, ...shares } = w.shares
  // What is over the budget is part of the messages: the last of them.
  const parts = { ...shares, messages: Math.max(0, shares.messages - over), over }
  const shown = ['addition', 'summaries', 'messages', 'over', 'free'].filter((name) => parts[name] > 0)
  return html`
    <figure class="shares">
      <div class="bar" role="img" aria-label=${shown.map((n) => `${names[n]}: ${number(parts[n])} tokens`).join(', ')}>
        ${shown.map((n) => html`<span key=${n} class=${'share share-' + n} style=${{ flexGrow: parts[n] / all }} title=${`${names[n]}: ${number(parts[n])} tokens`} />`)}
      </div>
      <figcaption>
        ${shown.map((n) => html`<span key=${n}><i class=${'swatch share-' + n} aria-hidden="true" />${names[n]} <b class="num">${number(parts[n])}</b> <span class="dim">${percent(parts[n], all)}</span></span>`)}
        <span class="total"><b class="num">${number(w.total)}</b> of <b class="num">${number(w.budget)}</b> tokens</span>
      </figcaption>
    </figure>`
}
