/** White space runs become one space, and the ends are trimmed; at most `maxChars`, never half a character. */
export function tidy(text: string, maxChars: number): string {
  // What is cut off need not be collapsed; four times the bound leaves room for white space.
  const head = text.length > 4 * maxChars ? text.slice(0, 4 * maxChars) : text
  return clip(head.replace(/\s+/g, ' ').trim(), maxChars)
}

/** The start of a text, to the last whole word within `maxChars` where there is one. */
export function opening(text: string, maxChars: number): string {
  const tidied = tidy(text, maxChars + 1)
  if (tidied.length <= maxChars) return tidied
  const space = tidied.lastIndexOf(' ', maxChars)
  return clip(tidied, space > maxChars / 2 ? space : maxChars)
}

function clip(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text
  const last = text.charCodeAt(maxChars - 1)
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? maxChars - 1 : maxChars)
}

/** A language tag (RFC 5646 in shape), the first of a list; null if it is none. */
export function languageTag(value: string | null | undefined): string | null {
  if (value == null) return null
  const tag = value.split(',', 1)[0]!.trim().replaceAll('_', '-')
  return /^[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8}){0,4}$/.test(tag) ? tag : null
}
