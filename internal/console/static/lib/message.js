// Reads a message of any dialect for people: parts of text, reasoning, calls
// and results. What it does not know it shows as JSON.

export function parts(message) {
  if (message === null || typeof message !== 'object') return [other(message)]
  const out = []
  for (const name of ['summary', 'command', 'output']) {
    if (typeof message[name] === 'string') out.push({ kind: 'text', text: message[name] })
  }
  if (typeof message.reasoning_content === 'string') out.push({ kind: 'reasoning', text: message.reasoning_content })
  out.push(...contents(message.content))
  for (const c of list(message.tool_calls)) {
    out.push({ kind: 'call', name: c?.function?.name ?? c?.name, id: c?.id, text: argument(c?.function?.arguments ?? c?.arguments) })
  }
  if (message.role === 'toolResult' || message.role === 'tool') {
    const name = message.toolName ?? message.name
    const id = message.toolCallId ?? message.tool_call_id
    return [{ kind: 'result', name, id, failed: message.isError === true, text: out.map((p) => p.text).join('\n') }]
  }
  return out
}

function contents(content) {
  if (typeof content === 'string') return content === '' ? [] : [{ kind: 'text', text: content }]
  if (Array.isArray(content)) return content.map(part)
  return content === undefined || content === null ? [] : [other(content)]
}

function part(p) {
  switch (p?.type) {
    case 'text':
    case 'input_text':
    case 'output_text':
      return { kind: 'text', text: string(p.text) }
    case 'thinking':
      return { kind: 'reasoning', text: string(p.thinking) || '(sealed by its provider)' }
    case 'redacted_thinking':
      return { kind: 'reasoning', text: '(sealed by its provider)' }
    case 'toolCall':
    case 'tool_use':
      return { kind: 'call', name: p.name, id: p.id, text: argument(p.arguments ?? p.input) }
    case 'tool_result':
      return { kind: 'result', id: p.tool_use_id, failed: p.is_error === true, text: contents(p.content).map((x) => x.text).join('\n') }
    case 'image':
    case 'image_url':
    case 'input_image':
      return { kind: 'image', text: 'image' + (p.mimeType ?? p.source?.media_type ? ` (${p.mimeType ?? p.source.media_type})` : '') }
  }
  return typeof p === 'string' ? { kind: 'text', text: p } : other(p)
}

// line is a message on one line, for lists.
export function line(message, most = 400) {
  let text = ''
  for (const p of parts(message)) {
    if (text.length > most) break
    const words = p.text.slice(0, most).replace(/\s+/g, ' ').trim()
    if (p.kind === 'call') text += ` → ${p.name ?? '?'} ${words}`
    else if (p.kind === 'result') text += ` ← ${p.name ? p.name + ' ' : ''}${words}`
    else if (p.kind !== 'reasoning' || text === '') text += ' ' + words
  }
  return text.trim()
}

const list = (x) => (Array.isArray(x) ? x : [])
const string = (x) => (typeof x === 'string' ? x : JSON.stringify(x) ?? '')
const argument = (x) => (typeof x === 'string' ? x : JSON.stringify(x, null, 1) ?? '')
const other = (x) => ({ kind: 'other', text: JSON.stringify(x, null, 1) ?? '' })
