// Every view is a hash, so that it can be shared as a link and the node needs
// to know of none of them.
import { useState, useEffect } from './html.js'

export function parse(hash) {
  const text = hash.replace(/^#/, '')
  const at = text.indexOf('?')
  const segments = (at < 0 ? text : text.slice(0, at)).split('/').filter(Boolean).map(decode)
  return { segments, query: Object.fromEntries(new URLSearchParams(at < 0 ? '' : text.slice(at + 1))) }
}

function decode(text) {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

// link names a view; what is empty in the query is left out.
export function link(segments, query = {}) {
  const q = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== '' && value !== false) q.set(name, value === true ? '1' : value)
  }
  const text = q.toString()
  return '#/' + segments.map((s) => encodeURIComponent(s)).join('/') + (text ? '?' + text : '')
}

export const sessionLink = (key, tab = 'window', query) => link(['s', key, tab], query)
export const logLink = (key, seq) => sessionLink(key, 'log', { seq })

export function go(href, { replace = false } = {}) {
  if (href === location.hash) return
  if (!replace) {
    location.hash = href
    return
  }
  history.replaceState(null, '', href)
  dispatchEvent(new HashChangeEvent('hashchange'))
}

export function useRoute() {
  const [route, set] = useState(() => parse(location.hash))
  useEffect(() => {
    const changed = () => set(parse(location.hash))
    addEventListener('hashchange', changed)
    return () => removeEventListener('hashchange', changed)
  }, [])
  return route
}
