import { domainToUnicode } from 'node:url'
import { createRecentCache } from '../cache.ts'
import { normalizeEscapes } from './escapes.ts'
import { createParameterFilter, type ParameterFilter } from './parameters.ts'

export interface UrlOptions {
  /** Longest key and fetchUrl, in characters (both are ASCII); 2,048 by default. */
  readonly maxUrlLength?: number
  /** Parameters that go; by default the built-in lists. */
  readonly filter?: ParameterFilter
}

/** `syntax`: no URL, or a host that cannot exist · `scheme`: not http or https · `port`: 0 · `too-long`. */
export type UrlErrorCode = 'syntax' | 'scheme' | 'port' | 'too-long'

export interface CanonicalUrl {
  /** What the URL is known by everywhere. */
  readonly key: string
  /** What is requested: this spelling, without what cannot change the document. */
  readonly fetchUrl: string
  /** IPv6 in brackets. */
  readonly host: string
  readonly port: number
  readonly scheme: 'http' | 'https'
}
export interface RefusedUrl {
  readonly error: { readonly code: UrlErrorCode; readonly message: string }
}

export const defaultMaxUrlLength = 2_048

/**
 * The canonical key of a link and the URL to fetch for it; never throws.
 *
 * Both are WHATWG serializations without fragment, credentials (a secret in a link is not ours to use), tracking and
 * session parameters, `;jsessionid=` and `;phpsessid=` in the path, a host's final dot, an empty `?`. The key
 * also has its percent-escapes in one spelling and its parameters sorted, stably, by name. A trailing slash is never
 * added or taken; the scheme stays. Applied to a key it gives the key again.
 */
export function canonicalizeUrl(href: string, base?: string | URL, options?: UrlOptions): CanonicalUrl | RefusedUrl {
  return createUrlResolver(base, options)(href)
}

/** The same for many links of one page: what depends on the base is worked out once. */
export function createUrlResolver(
  base?: string | URL,
  options: UrlOptions = {},
): (href: string) => CanonicalUrl | RefusedUrl {
  const maxUrlLength = options.maxUrlLength ?? defaultMaxUrlLength
  const filter = options.filter ?? defaultFilter
  const baseUrl = typeof base === 'string' ? URL.parse(base)?.href : base?.href
  if (base !== undefined && baseUrl === undefined) {
    return (href) => refused('syntax', href, `the base is no URL: ${shorten(String(base))}`)
  }
  const own = baseUrl === undefined ? undefined : webOriginOf(baseUrl)

  return (href) => {
    if (own !== undefined) {
      const start = href.charCodeAt(0) === slash ? 0 : href.startsWith(own.text) ? own.text.length : -1
      const end = start < 0 ? -1 : plainEnd(href, start, filter)
      if (end >= 0) {
        const key = start === 0 ? own.text + href.slice(0, end) : href.slice(0, end)
        if (key.length > maxUrlLength) return tooLong(href, key.length, maxUrlLength)
        return { key, fetchUrl: key, host: own.host, port: own.port, scheme: own.scheme }
      }
    }
    return canonicalizeAny(href, baseUrl, filter, maxUrlLength)
  }
}

const defaultFilter = createParameterFilter()
/** Longer ones are not even parsed. */
const maxHrefLength = 16 * 1024
const slash = 0x2f

interface Origin {
  /** `https://host` or `https://host:port`. */
  readonly text: string
  readonly host: string
  readonly port: number
  readonly scheme: 'http' | 'https'
}

function canonicalizeAny(
  href: string,
  base: string | undefined,
  filter: ParameterFilter,
  maxUrlLength: number,
): CanonicalUrl | RefusedUrl {
  const scheme = foreignScheme.exec(href)
  if (scheme !== null && !webScheme.test(scheme[0])) return refused('scheme', href, `${scheme[0]} is not fetched`)
  if (href.length > maxHrefLength) return tooLong(href, href.length, maxUrlLength)
  // One string, taken apart here: each property of a URL is a call into the platform.
  const text = URL.parse(href, base)?.href
  if (text === undefined) return refused('syntax', href, base === undefined ? 'no absolute URL' : 'no URL')
  if (!webUrl.test(text)) {
    return refused('scheme', href, `${text.slice(0, text.indexOf(':') + 1)} is not fetched`)
  }
  const pathStart = text.indexOf('/', 'https://'.length)
  const origin = originOf(text.slice(0, pathStart))
  if ('code' in origin) return refused(origin.code, href, origin.why)

  const hash = text.indexOf('#', pathStart)
  const end = hash < 0 ? text.length : hash
  const question = text.indexOf('?', pathStart)
  const pathEnd = question < 0 || question > end ? end : question
  const path = text.slice(pathStart, pathEnd)
  let fetchUrl = origin.text + withoutPathSession(path)
  let key = origin.text + withoutPathSession(normalizeEscapes(path))
  if (pathEnd + 1 < end) {
    const query = splitQuery(text.slice(pathEnd + 1, end), filter)
    if (query.fetch !== '') fetchUrl += `?${query.fetch}`
    if (query.key !== '') key += `?${query.key}`
  }
  const length = Math.max(key.length, fetchUrl.length)
  if (length > maxUrlLength) return tooLong(href, length, maxUrlLength)
  return { key, fetchUrl, host: origin.host, port: origin.port, scheme: origin.scheme }
}

// Up to 32 characters: a longer word before a colon goes to the parser, which comes to the same end.
const foreignScheme = /^[A-Za-z][A-Za-z0-9+.-]{0,31}:/
const webScheme = /^https?:$/i
const webUrl = /^https?:\/\//

function webOriginOf(serialized: string): Origin | undefined {
  if (!webUrl.test(serialized)) return undefined
  const origin = originOf(serialized.slice(0, serialized.indexOf('/', 'https://'.length)))
  return 'code' in origin ? undefined : origin
}

interface BadOrigin {
  readonly code: UrlErrorCode
  readonly why: string
}

/** Of a serialized URL's part before the path: `scheme://[credentials@]host[:port]`. */
function originOf(serialized: string): Origin | BadOrigin {
  const hostStart = serialized.indexOf('//') + 2
  const at = serialized.lastIndexOf('@')
  const text = at < 0 ? serialized : serialized.slice(0, hostStart) + serialized.slice(at + 1)
  let origin = memo.get(text)
  if (origin === undefined) {
    const made = makeOrigin(text, hostStart)
    if ('code' in made) return made
    origin = made
    memo.set(text, origin)
  }
  return origin
}

function makeOrigin(text: string, hostStart: number): Origin | BadOrigin {
  const scheme = hostStart === 'http://'.length ? 'http' : 'https'
  const portMatch = /:(\d+)$/.exec(text)
  const authorityEnd = portMatch === null ? text.length : portMatch.index
  const host = text.slice(hostStart, text[authorityEnd - 1] === '.' ? authorityEnd - 1 : authorityEnd)
  const wrong = whatIsWrongWithHost(host)
  if (wrong !== undefined) return { code: 'syntax', why: `the host ${shorten(host)} ${wrong}` }
  const port = portMatch === null ? (scheme === 'http' ? 80 : 443) : Number(portMatch[1])
  if (port === 0) return { code: 'port', why: 'nothing answers on port 0' }
  return { text: `${scheme}://${host}${portMatch?.[0] ?? ''}`, host, port, scheme }
}

// Pure, so that remembering changes nothing but the cost; names that are refused are not remembered.
const memo = createRecentCache<Origin>(4_096)

/** Limits of DNS (RFC 1035 §2.3.4), and labels that claim to be IDNA (RFC 5891) and are not. Underscores are fine. */
function whatIsWrongWithHost(host: string): string | undefined {
  if (host.length > 253) return 'has over 253 characters'
  let labelStart = 0
  for (let i = 0; i <= host.length; i++) {
    if (i < host.length && host.charCodeAt(i) !== 0x2e) continue
    if (i === labelStart) return 'has an empty label'
    if (i - labelStart > 63) return 'has a label of over 63 characters'
    if (host.startsWith('xn--', labelStart)) {
      const label = host.slice(labelStart, i)
      // What cannot be decoded is given back as it is.
      if (domainToUnicode(label) === label) return `has a label that is no IDNA name: ${label}`
    }
    labelStart = i + 1
  }
  return undefined
}

function splitQuery(query: string, filter: ParameterFilter): { fetch: string; key: string } {
  const fetch: string[] = []
  const kept: { name: string; text: string }[] = []
  let sorted = true
  let last = ''
  for (const raw of query.split('&')) {
    const text = normalizeEscapes(raw)
    const equals = text.indexOf('=')
    const name = equals < 0 ? text : text.slice(0, equals)
    if (filter(name, equals < 0 ? '' : text.slice(equals + 1))) continue
    fetch.push(raw)
    if (text === '') continue
    kept.push({ name, text })
    sorted &&= last <= name
    last = name
  }
  // ASCII throughout, so code units are bytes.
  if (!sorted) kept.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
  return { fetch: fetch.join('&'), key: kept.map((p) => p.text).join('&') }
}

const pathSession = /;(?:jsessionid|phpsessid)=[^/;]*/gi

function withoutPathSession(path: string): string {
  if (!path.includes(';')) return path
  return path.replace(pathSession, (match, at: number) => {
    // What would be left must not become a dot segment: that would be another path.
    const segment = normalizeEscapes(path.slice(path.lastIndexOf('/', at) + 1, at))
    return segment === '.' || segment === '..' ? match : ''
  })
}

/**
 * The fast path: where a link that starts with `/` at `start` ends (its fragment is cut off) if nothing in it needs
 * the parser; else -1. That it gives what the parser gives is held by a property test.
 */
function plainEnd(href: string, start: number, filter: ParameterFilter): number {
  if (href.charCodeAt(start) !== slash || href.charCodeAt(start + 1) === slash) return -1
  let queryStart = -1
  let i = start
  for (; i < href.length; i++) {
    const code = href.charCodeAt(i)
    if (code === 0x23) break
    if (code === 0x3f && queryStart < 0) {
      queryStart = i + 1
      continue
    }
    if (code > 0x7e || plainCharacters[code] === 0) return -1
    // Perhaps a dot segment.
    if (code === 0x2e && queryStart < 0 && href.charCodeAt(i - 1) === slash) return -1
  }
  if (queryStart < 0) return i
  if (queryStart === i) return -1
  const equals = href.indexOf('=', queryStart)
  const nameEnd = equals < 0 || equals > i ? i : equals
  return filter(href.slice(queryStart, nameEnd), href.slice(nameEnd + 1, i)) ? -1 : i
}

/** Characters that mean nothing to parser, escapes, parameters or sessions, in path and query alike. */
const plainCharacters = new Uint8Array(0x7f)
for (const character of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/:@!$()*+,=') {
  plainCharacters[character.charCodeAt(0)] = 1
}

function tooLong(href: string, length: number, maxUrlLength: number): RefusedUrl {
  return refused('too-long', href, `${length} characters, at most ${maxUrlLength} are taken`)
}

function refused(code: UrlErrorCode, href: string, why: string): RefusedUrl {
  return { error: { code, message: `canonicalizing ${shorten(href)}: ${why}` } }
}

function shorten(text: string): string {
  return JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text)
}
