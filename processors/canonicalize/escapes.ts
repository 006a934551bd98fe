/**
 * Percent-escapes in their one spelling (RFC 3986 §6.2.2.1–2): hexadecimal digits upper-case, unreserved characters
 * (A-Z a-z 0-9 - . _ ~) decoded, all others left. A `%` that starts no escape becomes `%25`: left alone it could form
 * an escape with digits that were just decoded, and the result would not be stable.
 */
export function normalizeEscapes(text: string): string {
  let at = text.indexOf('%')
  if (at < 0) return text
  let out = ''
  let from = 0
  for (; at >= 0; at = text.indexOf('%', from)) {
    out += text.slice(from, at)
    const octet = escapedOctet(text, at)
    if (octet < 0) {
      out += '%25'
      from = at + 1
    } else {
      out += isUnreserved(octet) ? String.fromCharCode(octet) : text.slice(at, at + 3).toUpperCase()
      from = at + 3
    }
  }
  return out + text.slice(from)
}

/** The octet that `%hh` at `at` stands for, or -1. */
export function escapedOctet(text: string, at: number): number {
  const high = hexDigit(text.charCodeAt(at + 1))
  const low = hexDigit(text.charCodeAt(at + 2))
  return high < 0 || low < 0 ? -1 : high * 16 + low
}

/** RFC 3986 §2.3. */
export function isUnreserved(octet: number): boolean {
  return (
    (octet >= 0x61 && octet <= 0x7a) ||
    (octet >= 0x41 && octet <= 0x5a) ||
    (octet >= 0x30 && octet <= 0x39) ||
    octet === 0x2d ||
    octet === 0x2e ||
    octet === 0x5f ||
    octet === 0x7e
  )
}

// NaN (past the end) fails every comparison.
function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30
  const lower = code | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1
}
