import { visible } from './visible.js'

// marked cuts a snippet at its marks, which count code points.
export function marked(snippet, marks) {
  const points = [...snippet]
  const out = []
  let at = 0
  for (const { start, end } of marks) {
    if (start > at) out.push({ text: visible(points.slice(at, start).join('')) })
    if (end > Math.max(at, start)) out.push({ text: visible(points.slice(Math.max(at, start), end).join('')), hit: true })
    at = Math.max(at, end)
  }
  if (at < points.length) out.push({ text: visible(points.slice(at).join('')) })
  return out
}
