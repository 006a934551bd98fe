import { decodeHTML, decodeHTMLAttribute } from 'entities'

/**
 * Decodes the character references of text (HTML standard, 13.2.5.72-84). Line ends become LF. Each reference is
 * decoded once: `&amp;amp;` is `&amp;`.
 */
export function decodeText(raw: string): string {
  return decode(raw, false)
}

/** The same for an attribute's value, where `&copy=` and `&copyx` are no references. */
export function decodeAttribute(raw: string): string {
  return decode(raw, true)
}

export interface Reference {
  /** What the reference stands for. */
  readonly text: string
  /** Where it ends in the input. */
  readonly end: number
}

/** The reference at `raw[at]`, which is `&`, or undefined if it is a plain ampersand. */
export function referenceAt(raw: string, at: number, inAttribute: boolean): Reference | undefined {
  return raw.charCodeAt(at + 1) === 35 ? numeric(raw, at) : named(raw, at, inAttribute)
}

/** Longest name: CounterClockwiseContourIntegral, 31 letters. */
export const maxReferenceName = 31

function decode(raw: string, inAttribute: boolean): string {
  let text = raw
  if (text.includes('\r')) text = text.replaceAll('\r\n', '\n').replaceAll('\r', '\n')
  if (text.includes('\0')) text = text.replaceAll('\0', '\ufffd')
  let at = text.indexOf('&')
  if (at < 0) return text
  let out = ''
  let done = 0
  for (; at >= 0; at = text.indexOf('&', at)) {
    const reference = referenceAt(text, at, inAttribute)
    if (reference === undefined) {
      at++
      continue
    }
    out += text.slice(done, at) + reference.text
    done = at = reference.end
  }
  return out + text.slice(done)
}

function numeric(raw: string, at: number): Reference | undefined {
  let i = at + 2
  const hex = (raw.charCodeAt(i) | 32) === 120
  if (hex) i++
  const first = i
  let code = 0
  for (; ; i++) {
    const digit = digitOf(raw.charCodeAt(i), hex)
    if (digit < 0) break
    // Once out of range it stays so, however many digits follow.
    if (code <= 0x10ffff) code = code * (hex ? 16 : 10) + digit
  }
  if (i === first) return undefined
  if (raw.charCodeAt(i) === 59) i++
  if (code === 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return { text: '\ufffd', end: i }
  const remapped = code >= 0x80 && code <= 0x9f ? windows1252.charCodeAt(code - 0x80) : code
  return { text: String.fromCodePoint(remapped), end: i }
}

function named(raw: string, at: number, inAttribute: boolean): Reference | undefined {
  let i = at + 1
  const last = i + maxReferenceName
  while (i < last && isAlphanumeric(raw.charCodeAt(i))) i++
  if (i === at + 1) return undefined
  const closed = raw.charCodeAt(i) === 59
  const name = raw.slice(at, closed ? i + 1 : i)
  if (closed) {
    const common = commonReferences.get(name)
    if (common !== undefined) return { text: common, end: i + 1 }
  }
  // An attribute's rule looks at the character after the name, so it goes along.
  const tail = inAttribute && !closed ? raw.charAt(i) : ''
  const decoded = inAttribute ? decodeHTMLAttribute(name + tail) : decodeHTML(name)
  if (decoded === name + tail) return undefined
  return { text: tail === '' ? decoded : decoded.slice(0, -tail.length), end: at + name.length }
}

const commonReferences: ReadonlyMap<string, string> = new Map([
  ['&amp;', '&'],
  ['&nbsp;', '\u00a0'],
  ['&quot;', '"'],
  ['&lt;', '<'],
  ['&gt;', '>'],
  ['&apos;', "'"],
])

/** What 0x80-0x9F mean in a numeric reference (13.2.5.84). */
const windows1252 =
  '\u20ac\x81\u201a\u0192\u201e\u2026\u2020\u2021\u02c6\u2030\u0160\u2039\u0152\x8d\u017d\x8f' +
  '\x90\u2018\u2019\u201c\u201d\u2022\u2013\u2014\u02dc\u2122\u0161\u203a\u0153\x9d\u017e\u0178'

function digitOf(code: number, hex: boolean): number {
  if (code >= 48 && code <= 57) return code - 48
  const letter = code | 32
  return hex && letter >= 97 && letter <= 102 ? letter - 87 : -1
}

function isAlphanumeric(code: number): boolean {
  const letter = code | 32
  return (code >= 48 && code <= 57) || (letter >= 97 && letter <= 122)
}
