// What a session says is shown as text and only as text. Some characters would
// still act on a reader: turn the line around, hide words, end it. They are
// shown by name instead.

const acting = new RegExp(
  [
    '[\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f]', // controls
    '\\r(?!\\n)',
    '[\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]', // directions
    '[\\u200b\\u2028\\u2029\\u2060-\\u2065\\u206a-\\u206f\\ufeff\\ufff9-\\ufffb]', // unseen
    '[\\u{e0000}-\\u{e007f}]', // tags: letters that only a model reads
    '\\p{Surrogate}', // half a character
  ].join('|'),
  'gu',
)

export const visible = (text) => text.replace(acting, name)

function name(c) {
  const code = c.codePointAt(0)
  if (code < 0x20) return String.fromCharCode(0x2400 + code) // ␀ ␛ …
  if (code === 0x7f) return '␡'
  return `‹U+${code.toString(16).toUpperCase().padStart(4, '0')}›`
}

// head is the first n units of a text, without half a character at its end.
export function head(text, n) {
  if (text.length <= n) return text
  const last = text.charCodeAt(n - 1)
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? n - 1 : n)
}

// pieces cuts a long text so that a browser lays out only what is looked at.
export function pieces(text, n) {
  const out = []
  for (let at = 0; at < text.length; ) {
    const piece = head(text.slice(at, at + n + 1), n)
    out.push(piece)
    at += piece.length
  }
  return out
}
