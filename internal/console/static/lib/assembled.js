// What a window is made of, from the answer of assemble with `explain`.

// With `covers` (what each summary stands for, by its place) summaries say so;
// `before` is how many places stand before the session's own seqs.
export function read(answer, fallbackBudget, covers, before = 0) {
  const shown = inOneMessage(answer.explanation.filter((e) => e.shown))
  const named = shown.length === answer.messages.length
  const rows = answer.messages.map((message, i) => ({
    message, seq: named ? shown[i].seq : 0, sessionKey: named ? shown[i].sessionKey : undefined, kind: named ? shown[i].kind : 'message',
    tokens: named ? shown[i].tokens : 0, reason: named ? shown[i].reason : '',
  }))
  for (const row of rows) {
    if (row.sessionKey || !row.seq) continue // an ancestor's, whose places are not known here, or no event
    row.place = row.seq + before
    if (row.kind === 'summary') row.covers = covers?.get(row.place)
  }
  const sum = (list) => list.reduce((n, e) => n + e.tokens, 0)
  const summaries = sum(rows.filter((r) => r.kind === 'summary'))
  const messages = sum(rows) - summaries
  const total = answer.estimatedTokens
  const budget = answer.overBudget?.budget ?? answer.tokenBudget ?? fallbackBudget
  return {
    rows, total, budget, overBudget: answer.overBudget, addition: answer.systemPromptAddition ?? '',
    passages: answer.explanation.filter((e) => e.kind === 'passage'),
    leftOut: answer.explanation.filter((e) => !e.shown),
    shares: {
      addition: answer.systemPromptAddition ? Math.max(0, total - summaries - messages) : 0,
      summaries, messages, free: Math.max(0, budget - total), over: Math.max(0, total - budget),
    },
    head: answer.head, epoch: answer.contextProjection?.epoch ?? String(answer.epoch), fingerprint: answer.contextProjection?.fingerprint ?? '',
    unseen: answer.leftOut ?? 0,
  }
}

// One line for all passages of a message, which is no event.
function inOneMessage(shown) {
  const out = []
  for (const e of shown) {
    const last = out.at(-1)
    if (e.kind !== 'passage') out.push(e)
    else if (last?.kind === 'passages') last.tokens += e.tokens
    else out.push({ seq: 0, kind: 'passages', tokens: e.tokens, reason: 'older passages that match what is asked' })
  }
  return out
}

// compare lays two windows side by side. What both show they show in the same
// order, since the log has only one, so a walk along the second suffices.
export function compare({ rows: a }, { rows: b, leftOut }) {
  const reasons = new Map(leftOut.map((e) => [`${e.seq} ${e.sessionKey ?? ''}`, e.reason]))
  const summaries = b.filter((row) => row.covers)
  // fate is why what A showed is not in B.
  const fate = (row) => reasons.get(name(row)) ??
    summaries.filter((s) => s.covers.some((r) => r.from <= row.place && row.place <= r.to)).map((s) => `now in summary ${s.seq}`)[0] ?? ''
  // What was inherited has its ancestor's seqs, and what is no event has none.
  const name = (row) => `${row.seq || row.kind} ${row.sessionKey ?? ''}`
  const at = new Map(a.map((row, i) => [name(row), i]))
  const lines = []
  const left = (row) => lines.push({ op: 'left', row: { ...row, reason: fate(row) } })
  let next = 0
  for (const row of b) {
    const j = at.get(name(row))
    if (j === undefined || j < next) {
      lines.push({ op: 'came', row })
      continue
    }
    while (next < j) left(a[next++])
    next = j + 1
    const same = JSON.stringify(a[j].message) === JSON.stringify(row.message)
    lines.push({ op: same ? 'stayed' : 'changed', row, was: a[j] })
  }
  while (next < a.length) left(a[next++])
  return lines
}

// byReason groups what is left out, largest group first.
export function byReason(leftOut) {
  const groups = new Map()
  for (const e of leftOut) {
    const g = groups.get(e.reason) ?? { reason: e.reason, tokens: 0, items: [] }
    g.tokens += e.tokens
    g.items.push(e)
    groups.set(e.reason, g)
  }
  return [...groups.values()].sort((x, y) => y.items.length - x.items.length)
}
