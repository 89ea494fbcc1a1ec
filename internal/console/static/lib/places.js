// In a fork's tree messages and summaries are named by their place: what it
// inherited comes first, its own event n has the place inherited + n.
import { get, path } from './api.js'
import { ranges } from './format.js'

// inherited is how many places stand before the session's own events.
export async function inherited(session, signal) {
  if (!session.lineage.parent) return 0
  const { events } = await get(path(session.sessionKey, 'events'), { type: 'forked', limit: 1 }, signal)
  return events[0]?.data?.inherited ?? 0
}

// own are the parts of ranges of places that are the session's own, as seqs.
export const own = (covers, before) =>
  covers.filter((r) => r.to > before).map((r) => ({ from: Math.max(r.from - before, 1), to: r.to - before }))

// covered says in words what a summary stands for.
export function covered(covers, before, most = 3) {
  const theirs = covers.filter((r) => r.from <= before).map((r) => ({ from: r.from, to: Math.min(r.to, before) }))
  const words = (list) => ranges(list.slice(0, most)) + (list.length > most ? ', …' : '')
  return [theirs.length > 0 && 'inherited ' + words(theirs), words(own(covers, before))].filter(Boolean).join(' and ')
}
