// Reading a log in either direction. Seqs have no gaps, so a page before a seq
// is the page that begins a stride before it; nothing else of the log is loaded.
import { get, path } from './api.js'

const mostLookedAt = { rows: 10_000, index: 2_000_000 }

// find collects up to `want` events that match, from a seq on, towards older or
// newer ones. It gives up after a while and says how far it came.
export async function find(sessionKey, { from, older, head, type, match = () => true, every, want }, signal) {
  // Everything matches: the stride is the page. A type has an index on the node,
  // so where it is rare the strides grow. A role is looked for in the rows.
  let stride = every ? want : type ? 2000 : 250
  const most = type ? mostLookedAt.index : mostLookedAt.rows
  let events = []
  let at = from
  for (let looked = 0; events.length < want && looked < most && at >= 1 && at <= head; ) {
    const low = older ? Math.max(1, at - stride + 1) : at
    const high = older ? at : Math.min(head, at + stride - 1)
    const { rows, first, last } = await read(sessionKey, { low, high, older, type, match, every }, signal)
    events = older ? [...rows, ...events] : [...events, ...rows]
    at = older ? first - 1 : last + 1
    if (every) break
    looked += stride
    if (type) stride *= 4
  }
  if (events.length > want) {
    events = older ? events.slice(-want) : events.slice(0, want)
    at = older ? events[0].seq - 1 : events[want - 1].seq + 1
  }
  return older ? { events, first: at + 1, last: from } : { events, first: from, last: at - 1 }
}

// read looks at all events from low to high. Large messages end a page of the
// API early; where everything is wanted, one such page is enough, the one at the
// end that was asked for.
async function read(sessionKey, { low, high, older, type, match, every }, signal) {
  let rows = []
  for (let first = low, next = low; ; ) {
    const page = await get(path(sessionKey, 'events'), { after: next - 1, limit: Math.min(500, high - next + 1), type }, signal)
    const found = page.events.filter((e) => e.seq <= high && match(e))
    const last = page.next === null || page.next >= high ? high : page.next
    if (every) [rows, first] = [found, next]
    else rows.push(...found)
    if (last === high || (every && !older)) return { rows, first, last }
    next = last + 1
  }
}

// steps are the newest epochs of a session and what began each, newest first.
const stepTypes = 'epoch.rotated,leaf.moved,session.reset,ancestor.erased'

export async function steps(sessionKey, head, signal) {
  const { events, first } = await find(sessionKey, { from: head, older: true, head, type: stepTypes, want: 200 }, signal)
  const byEpoch = new Map()
  for (const e of events) {
    const epoch = e.type === 'epoch.rotated' ? e.data.epoch : e.epoch + 1
    const known = byEpoch.get(epoch)
    // A reset or rewind may be told of twice: by what was done and by what it began.
    if (known && e.type !== 'epoch.rotated') continue
    byEpoch.set(epoch, {
      epoch, seq: e.seq, at: e.recordedAt, cause: e.data?.cause ?? e.type, base: e.data?.base,
      before: e.data?.tokensBefore, after: e.data?.tokensAfter, live: e.data?.live?.length, reason: e.data?.reason,
    })
  }
  return { steps: [...byEpoch.values()].sort((a, b) => b.epoch - a.epoch), all: first <= 1 }
}

// inForce is the compaction that an undo would undo: the newest one whose
// summaries stand, looked up through undos that brought it back. Null where
// there is none.
export function inForce(list) {
  const byEpoch = new Map(list.map((s) => [s.epoch, s]))
  for (let epoch = list[0]?.epoch; byEpoch.has(epoch); ) {
    const s = byEpoch.get(epoch)
    if (s.cause === 'compaction') return s
    if (s.cause === 'undo') epoch = s.base
    else if (s.cause === 'rewrite') epoch--
    else return null
  }
  return null
}
