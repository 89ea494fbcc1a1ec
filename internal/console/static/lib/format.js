const whole = new Intl.NumberFormat('en')
const exact = new Intl.DateTimeFormat('en-CA', {
  year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23',
})

export const number = (n) => whole.format(n ?? 0)
export const plural = (n, noun, many = noun + 's') => `${number(n)} ${n === 1 ? noun : many}`
export const percent = (part, all) => (all > 0 ? Math.round((100 * part) / all) : 0) + ' %'
export const when = (time) => exact.format(new Date(time)).replace(',', '')

export function brief(n) {
  if (n < 10_000) return number(n)
  if (n < 1_000_000) return number(Math.round(n / 1000)) + 'k'
  return (n / 1e6).toFixed(n < 1e7 ? 2 : 1) + 'M'
}

// ago is rough on purpose: the exact time is one hover away.
export function ago(time, now = Date.now()) {
  const s = Math.round((now - new Date(time)) / 1000)
  if (s < 5) return 'now'
  for (const [unit, size] of [['d', 86400], ['h', 3600], ['min', 60]]) {
    if (s >= size) return `${number(Math.floor(s / size))} ${unit} ago`
  }
  return `${s} s ago`
}

export function size(bytes) {
  if (bytes < 1024) return plural(bytes, 'byte')
  if (bytes < 1024 * 1024) return (bytes / 1024).toFixed(1) + ' KiB'
  return (bytes / 1024 / 1024).toFixed(1) + ' MiB'
}

// money is millionths of a US dollar.
export const money = (micros) => '$' + (micros ? (micros / 1e6).toFixed(micros < 1e4 ? 6 : 4) : '0')

export const ranges = (list) => list.map((r) => (r.from === r.to ? `${r.from}` : `${r.from}–${r.to}`)).join(', ')
