import type { VisitEntry } from '../../schemas/types.ts'

export type HeaderPairs = readonly (readonly [string, string])[]

const maxRetryAfterMs = 86_400_000
const maxValidatorLength = 1024
const maxLocationLength = 8192

/** The first value of a field; names are lower-case. */
export function headerValue(headers: HeaderPairs, name: string): string | null {
  for (const [field, value] of headers) if (field.toLowerCase() === name) return value.trim()
  return null
}

/** Lower-case essence and charset of a Content-Type (WHATWG MIME Sniffing §4.4, the part of it that matters here). */
export function contentTypeOf(headers: HeaderPairs): {
  type: string | null
  charset: string | null
} {
  const value = headerValue(headers, 'content-type')
  if (value === null) return { type: null, charset: null }
  const [essence, ...parameters] = value.slice(0, 512).split(';')
  let charset: string | null = null
  for (const parameter of parameters) {
    const equals = parameter.indexOf('=')
    if (equals < 0 || parameter.slice(0, equals).trim().toLowerCase() !== 'charset') continue
    charset = parameter
      .slice(equals + 1)
      .trim()
      .replace(/^["']|["']$/g, '')
      .toLowerCase()
    break
  }
  const type = essence!.trim().toLowerCase()
  return {
    type: type === '' ? null : type,
    charset: charset === '' ? null : charset,
  }
}

/** Types whose body is read: what may hold text or links. A missing type is read, since many servers send none. */
export function isWanted(contentType: string | null): boolean {
  const { type } = contentTypeOf(contentType === null ? [] : [['content-type', contentType]])
  if (type === null) return true
  return type.startsWith('text/') || type === 'application/xml' || type.endsWith('+xml')
}

/**
 * Retry-After in milliseconds from `nowMs`, both forms (RFC 9110 §10.2.3), at most 24 h; null if absent or unreadable.
 */
export function retryAfterMs(headers: HeaderPairs, nowMs: number): number | null {
  const value = headerValue(headers, 'retry-after')
  if (value === null || value.length > 64) return null
  if (/^\d+$/.test(value)) return Math.min(Number(value) * 1000, maxRetryAfterMs)
  // An HTTP-date begins with a day's name; Date.parse would read much else as a date.
  if (!/^(?:mon|tue|wed|thu|fri|sat|sun)/i.test(value)) return null
  const atMs = Date.parse(value)
  return Number.isNaN(atMs) ? null : Math.min(Math.max(0, atMs - nowMs), maxRetryAfterMs)
}

/** A validator to send back as it came, if it is of a sane length. */
export function validator(headers: HeaderPairs, name: 'etag' | 'last-modified'): string | null {
  const value = headerValue(headers, name)
  return value === null || value === '' || value.length > maxValidatorLength ? null : value
}

/** The absolute target of a redirect without fragment; null if there is none that is a URL. */
export function redirectTarget(status: number, headers: HeaderPairs, base: string): string | null {
  if (![301, 302, 303, 307, 308].includes(status)) return null
  const value = headerValue(headers, 'location')
  if (value === null || value.length > maxLocationLength) return null
  const target = URL.parse(utf8OrLatin1(value), base)
  if (target === null) return null
  target.hash = ''
  return target.href
}

/** Header bytes come as latin1; what is UTF-8 in a Location is meant as UTF-8. */
function utf8OrLatin1(value: string): string {
  try {
    return strictUtf8.decode(Buffer.from(value, 'latin1'))
  } catch {
    return value
  }
}
const strictUtf8 = new TextDecoder('utf-8', { fatal: true })

/** gzip first: it is what the archive keeps at no cost. */
export function requestHeaders(userAgent: string, entry: VisitEntry): HeaderPairs {
  const headers: [string, string][] = [
    ['user-agent', userAgent],
    ['accept', entry.entryKind === 'robots' ? 'text/plain,*/*;q=0.5' : 'text/html,application/xhtml+xml,*/*;q=0.5'],
    ['accept-encoding', 'gzip, br;q=0.9, zstd;q=0.8, deflate;q=0.7'],
    ['accept-language', 'en,*;q=0.5'],
  ]
  if (entry.etag !== null && isFieldValue(entry.etag)) headers.push(['if-none-match', entry.etag])
  if (entry.lastModified !== null && isFieldValue(entry.lastModified)) {
    headers.push(['if-modified-since', entry.lastModified])
  }
  return headers
}

/** RFC 9110 §5.5: nothing that could end the line. */
function isFieldValue(value: string): boolean {
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(value)
}

/** The head as received; the archive makes it true of the body that it keeps. */
export function responseHead(response: {
  readonly status: number
  readonly statusText: string
  readonly httpVersion: string
  readonly headers: HeaderPairs
}): Buffer {
  const fields = response.headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return Buffer.from(
    `HTTP/${response.httpVersion} ${response.status} ${response.statusText}\r\n${fields}\r\n`,
    'latin1',
  )
}
