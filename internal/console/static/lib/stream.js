// Server-sent events by fetch, because EventSource cannot send an Authorization
// header. It resumes behind the last event that arrived.
import { send, Problem } from './api.js'

// follow calls onEvent for each event until the signal aborts, and onState with
// 'live', or with the problem that it waits out.
export async function follow(url, { query, lastId, onEvent, onState, signal }) {
  let id = lastId
  for (let failures = 0; !signal.aborted; ) {
    try {
      const headers = id === undefined ? {} : { 'Last-Event-ID': String(id) }
      const answer = await send('GET', url, { query, signal, headers })
      onState('live')
      failures = 0
      await read(answer.body, (event) => {
        id = event.id ?? id
        if (event.data) onEvent(JSON.parse(event.data), event.id)
      })
    } catch (err) {
      if (signal.aborted) return
      onState(err instanceof Problem ? err : new Problem(0, { title: 'The stream broke off', detail: String(err.message) }))
      // What is refused stays refused; only a node that is away comes back.
      if (err instanceof Problem && err.status >= 400 && err.status < 500 && err.status !== 429) return
      failures++
    }
    await pause(Math.min(1000 * 2 ** failures, 15000), signal)
  }
}

async function read(body, onEvent) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  // Pieces of an unfinished line are only joined once its end is there: a line
  // of megabytes arrives in hundreds of them.
  let pieces = []
  let event = { data: [] }
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    const lines = value.split('\n')
    for (let i = 0; i < lines.length - 1; i++) {
      pieces.push(lines[i])
      const line = pieces.join('')
      pieces = []
      if (line === '') {
        onEvent({ id: event.id, data: event.data.join('\n') })
        event = { data: [] }
      } else if (line.startsWith('data:')) event.data.push(line.slice(line[5] === ' ' ? 6 : 5))
      else if (line.startsWith('id:')) event.id = line.slice(3).trim()
    }
    pieces.push(lines[lines.length - 1])
  }
}

function pause(ms, signal) {
  return new Promise((done) => {
    const end = () => { clearTimeout(timer); done() }
    const timer = setTimeout(() => { signal.removeEventListener('abort', end); done() }, ms)
    signal.addEventListener('abort', end, { once: true })
  })
}
