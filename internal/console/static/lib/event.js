// What an event that is no message says, on one line; of a type that is not
// known here, its members.
import { number, plural, ranges } from './format.js'
import { line } from './message.js'

export const messageType = 'message.appended'

const words = {
  'turn.committed': (d) => `turn ${d.advancementKey}: ${plural(d.count, 'message')}`,
  'turn.completed': (d) =>
    [d.model, d.tokenBudget && `budget ${number(d.tokenBudget)}`, d.promptTokens && `prompt of ${number(d.promptTokens)} tokens`,
      d.isHeartbeat && 'heartbeat'].filter(Boolean).join(' · ') || 'turn ended',
  'host_session.bound': (d) => `host session ${d.hostSessionId}` + (d.gateway ? `, gateway ${d.gateway}` : ''),
  'identity.linked': (d) => `${plural(d.entries?.length ?? 0, 'record')} of the transcript of host session ${d.hostSessionId}`,
  'leaf.moved': (d) => `back to seq ${d.to}` + because(d),
  'session.reset': (d) => (d.keepFrom ? `kept from seq ${d.keepFrom}` : 'nothing kept') + because(d),
  'summary.created': (d) => `level ${d.level} of ${ranges(d.covers ?? [])}, ${number(d.sourceTokens)} → ${number(d.tokens)} tokens: ${d.text}`,
  'epoch.rotated': (d) =>
    `epoch ${d.epoch} by ${d.cause}` + (d.tokensBefore ? `, ${number(d.tokensBefore)} → ${number(d.tokensAfter)} tokens` : '') +
    `, ${plural(d.live?.length ?? 0, 'live summary', 'live summaries')}`,
  'message.superseded': (d) => `seq ${d.seq} is shown in a shorter form` + because(d),
  forked: (d) => `from ${d.parentSessionKey || 'a session that is gone'} at seq ${d.atSeq}`,
  'subagent.prepared': (d) => `by ${d.parentSessionKey || 'a session that is gone'}, context ${d.contextMode}`,
  'subagent.ended': (d) => `${d.reason}`,
  'ancestor.erased': () => 'what was inherited from an erased session is gone',
}

const because = (d) => (d.reason ? `: ${d.reason}` : '')

export function eventLine(event) {
  if (event.type === messageType) return line(event.message)
  const data = event.data ?? {}
  try {
    return words[event.type]?.(data) ?? JSON.stringify(data)
  } catch {
    return JSON.stringify(data)
  }
}
