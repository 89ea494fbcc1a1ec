import { get } from './api.js'
import { useLoad } from './load.js'

// useDefaultBudget is the budget of sessions that have none of their own.
export function useDefaultBudget() {
  const { data } = useLoad((signal) => get('/v1/engines', {}, signal), [])
  return data?.defaultTokenBudget ?? 0
}
