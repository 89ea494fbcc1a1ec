import { html } from '../lib/html.js'
import { ago, when, number, brief, percent } from '../lib/format.js'
import { visible } from '../lib/visible.js'

export const Time = ({ at }) => html`<time datetime=${at} title=${when(at)}>${ago(at)}</time>`

export const Role = ({ of }) => html`<span class=${'role role-' + of.replace(/\W/g, '')}>${of}</span>`

export const Mark = ({ kind = '', children, title }) => html`<span class=${'mark ' + kind} title=${title}>${children}</span>`

// Failure shows a problem in its own words.
export function Failure({ error, retry }) {
  if (!error) return null
  return html`
    <div class="failure" role="alert">
      <strong>${visible(error.title ?? 'Something in this page failed')}</strong>
      <span>${visible(error.detail ?? String(error.message ?? error))}</span>
      ${retry && html`<button onClick=${retry}>Try again</button>`}
    </div>`
}

export const Waiting = ({ children = 'Loading…' }) => html`<p class="waiting" role="status">${children}</p>`

export const Empty = ({ children }) => html`<p class="empty">${children}</p>`

// Fullness is tokens against a budget.
export function Fullness({ tokens, budget }) {
  if (!budget) return html`<span class="fullness none"><span class="num">${brief(tokens)}</span></span>`
  const over = tokens > budget
  return html`
    <span class=${'fullness' + (over ? ' over' : '')} title=${`${number(tokens)} of ${number(budget)} tokens (${percent(tokens, budget)})`}>
      <span class="track" aria-hidden="true"><span class="fill" style=${{ width: Math.min(100, (100 * tokens) / budget) + '%' }} /></span>
      <span class="num">${brief(tokens)} <span class="dim">/ ${brief(budget)}</span></span>
    </span>`
}

// Facts is a row of named values; what has none is left out.
export const Facts = ({ of }) => html`
  <dl class="facts">
    ${of.filter(([, value]) => value !== undefined && value !== null && value !== '' && value !== false)
      .map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
  </dl>`

export const Field = ({ label, hint, children, class: name = '' }) => html`
  <label class=${'field ' + name}><span>${label}</span>${children}${hint && html`<small>${hint}</small>`}</label>`
