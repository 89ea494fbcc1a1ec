// The public API, and nothing else: what the console can do, a key can.
import { key, refuse } from './key.js'

// Problem is an answer that is none, in the API's own words.
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || `HTTP ${status}`)
    this.status = status
    this.title = body.title || `HTTP ${status}`
    this.detail = body.detail || ''
    this.slug = (body.type || '').split('/').pop()
    this.checks = body.checks
  }
}

export const path = (sessionKey, ...rest) => ['/v1/sessions', segment(sessionKey), ...rest].join('/')

function segment(sessionKey) {
  // A browser takes these for directories, percent-encoded too.
  if (sessionKey === '.' || sessionKey === '..') {
    throw new Problem(0, { title: 'Out of reach', detail: 'A browser cannot name a session “.” or “..”; the command line can.' })
  }
  return encodeURIComponent(sessionKey)
}

export function withQuery(url, query) {
  const q = new URLSearchParams()
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined && value !== null && value !== '') q.set(name, value)
  }
  const text = q.toString()
  return text ? `${url}?${text}` : url
}

// send makes a call and leaves its body unread.
export async function send(method, url, { query, body, signal, headers } = {}) {
  const asked = key()
  let answer
  try {
    answer = await fetch(withQuery(url, query), {
      method, signal, credentials: 'omit', cache: 'no-store',
      headers: {
        ...(asked && { Authorization: `Bearer ${asked}` }),
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    })
  } catch (err) {
    if (err.name === 'AbortError') throw err
    throw new Problem(0, { title: 'The node does not answer', detail: 'It may be down or restarting. This page tries again by itself where it shows live data.' })
  }
  if (answer.ok) return answer
  const problem = new Problem(answer.status, await answer.json().catch(() => ({})))
  // A refusal of a key that has been replaced meanwhile says nothing of the new one.
  if (answer.status === 401 && asked === key()) refuse(problem)
  throw problem
}

export const get = async (url, query, signal) => (await send('GET', url, { query, signal })).json()
export const post = async (url, body, signal) => (await send('POST', url, { body, signal })).json()
export const erase = async (url, query) => (await send('DELETE', url, { query })).json()

// ready asks what the node lacks; not being ready is an answer here.
export async function ready(signal) {
  try {
    return await get('/readyz', {}, signal)
  } catch (err) {
    if (err instanceof Problem && err.checks) return { ready: false, checks: err.checks }
    throw err
  }
}
