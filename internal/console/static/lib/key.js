// The API key lives in this tab's sessionStorage and nowhere else: it goes with
// the tab, is never a cookie, and no other page is sent it.
const place = 'engined.key'
const listeners = new Set()
let refused = null

export const key = () => sessionStorage.getItem(place) ?? ''

// A key is plain ASCII; whatever else was pasted with it cannot be in a header.
export function setKey(text) {
  sessionStorage.setItem(place, text.replace(/[^\x21-\x7e]/g, ''))
  refused = null
  tell()
}

export function forgetKey() {
  sessionStorage.removeItem(place)
  refused = null
  tell()
}

// refusal is the problem of the last call that had no valid key, until another
// key is tried.
export const refusal = () => refused

export function refuse(problem) {
  if (refused) return
  refused = problem
  tell()
}

export function onKey(f) {
  listeners.add(f)
  return () => listeners.delete(f)
}

const tell = () => listeners.forEach((f) => f())
