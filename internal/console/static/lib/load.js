import { useState, useEffect, useRef, useCallback } from './html.js'

// useLoad asks whenever deps change and drops answers that are no longer wanted.
// The previous answer stays until the next one is there, so nothing jumps.
// A reload waits for the answer that is under way: were that dropped, a node
// slower than the page asks would never be heard.
export function useLoad(ask, deps) {
  const [state, set] = useState({ data: undefined, error: null, loading: true })
  const [round, again] = useState(0)
  const under = useRef({ way: false, wanted: false })
  useEffect(() => {
    const stop = new AbortController()
    under.current = { way: true, wanted: false }
    set((s) => ({ ...s, loading: true }))
    const end = (put) => {
      if (stop.signal.aborted) return
      set(put)
      under.current.way = false
      if (under.current.wanted) again((n) => n + 1)
    }
    Promise.resolve()
      .then(() => ask(stop.signal))
      .then((data) => end({ data, error: null, loading: false }), (error) => end((s) => ({ ...s, error, loading: false })))
    return () => stop.abort()
  }, [...deps, round])
  const reload = useCallback(() => {
    if (under.current.way) under.current.wanted = true
    else again((n) => n + 1)
  }, [])
  return { ...state, reload }
}

// useEvery calls f while the page is looked at, and at once when it is again.
export function useEvery(ms, f) {
  const latest = useRef(f)
  latest.current = f
  useEffect(() => {
    const tick = () => { if (!document.hidden) latest.current() }
    const timer = setInterval(tick, ms)
    document.addEventListener('visibilitychange', tick)
    return () => { clearInterval(timer); document.removeEventListener('visibilitychange', tick) }
  }, [ms])
}

// useDraft is a value that someone is changing: it is committed once it has
// stood still, and follows the outer value when that changes by itself.
export function useDraft(value, commit, ms = 250) {
  const [draft, set] = useState(value)
  const written = useRef(value)
  const latest = useRef(commit)
  latest.current = commit
  useEffect(() => {
    if (value === written.current) return
    written.current = value
    set(value)
  }, [value])
  useEffect(() => {
    if (draft === written.current) return
    const timer = setTimeout(() => { written.current = draft; latest.current(draft) }, ms)
    return () => clearTimeout(timer)
  }, [draft, ms])
  return [draft, set]
}
