// A message's own bytes. JSON.parse and back would be other bytes (order,
// digits, escapes), so they are cut out of the answer as they came.
import { send, path } from './api.js'

export async function rawMessage(sessionKey, seq, signal) {
  const answer = await send('GET', path(sessionKey, 'events'), { query: { after: seq - 1, limit: 1 }, signal })
  return messageBytes(new Uint8Array(await answer.arrayBuffer()))
}

const quote = 0x22, backslash = 0x5c, open = 0x7b, close = 0x7d, openList = 0x5b, closeList = 0x5d

// messageBytes finds the value of "message" (or "data") in a page of one event.
// The row's members are all plain before it, so the first such name at the row's
// depth is the one.
export function messageBytes(page) {
  let depth = 0
  for (let i = 0; i < page.length; i++) {
    const b = page[i]
    if (b === quote) {
      const end = stringEnd(page, i)
      const name = depth === 3 && page[end + 1] === 0x3a ? ascii(page, i + 1, end) : ''
      if (name === 'message' || name === 'data') return page.subarray(end + 2, valueEnd(page, end + 2))
      i = end
    } else if (b === open || b === openList) depth++
    else if (b === close || b === closeList) depth--
  }
  return new Uint8Array()
}

function valueEnd(page, start) {
  let depth = 0
  for (let i = start; i < page.length; i++) {
    const b = page[i]
    if (b === quote) i = stringEnd(page, i)
    else if (b === open || b === openList) depth++
    else if (b === close || b === closeList) { if (--depth < 0) return i; if (depth === 0) return i + 1 }
  }
  return page.length
}

function stringEnd(page, i) {
  for (i++; page[i] !== quote; i++) if (page[i] === backslash) i++
  return i
}

const ascii = (page, from, to) => String.fromCharCode(...page.subarray(from, Math.min(to, from + 32)))
