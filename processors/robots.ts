import { escapedOctet, isUnreserved } from './canonicalize/escapes.ts'

export interface RobotsRule {
  readonly allow: boolean
  /** What paths are compared with: escapes in one spelling, `*` any characters, a final `$` the end. */
  readonly pattern: string
  /** What precedence goes by: the pattern's length with all escapes in one spelling. */
  readonly octets: number
  /** From 1. */
  readonly line: number
  /** The line as written, without comment and outer blanks. */
  readonly text: string
}

export interface RobotsRules {
  /** Of our group, or of `*` if there is none, in the order of the file. */
  readonly rules: readonly RobotsRule[]
  /** As asked; the largest where a group has several. Null = not said. */
  readonly crawlDelayMs: number | null
  /** As written; they belong to no group. */
  readonly sitemaps: readonly string[]
  /** The token whose group these rules are of, lower case; `*`; null = no group is for us. */
  readonly agent: string | null
}

export interface RobotsVerdict {
  readonly allowed: boolean
  /** The rule that decided; null = none matched. */
  readonly line: number | null
  readonly rule: string | null
}

/** The most that is read of a robots.txt (RFC 9309 §2.5 asks for 500 KiB at least). */
export const maxRobotsBytes = 512 * 1024

/**
 * A robots.txt as it concerns one product token (RFC 9309 §2.2). Any bytes are read: what is no rule is skipped. Groups
 * of one token are one group; other records (sitemaps, unknown ones, blank lines) never end a group. As Google's parser
 * does, it also takes common misspellings and a blank for the colon.
 */
export function parseRobots(body: Uint8Array, token: string): RobotsRules {
  const ours = createGroup()
  const everyones = createGroup()
  const sitemaps: string[] = []
  const wanted = token.toLowerCase()
  const reader = createGroupReader(ours, everyones)

  forEachLine(body, (text, line) => {
    const record = splitRecord(text)
    if (record === undefined) return
    switch (recordKind(record.name)) {
      case 'user-agent':
        reader.agent(record.value, wanted)
        break
      case 'allow':
      case 'disallow':
        reader.rule(record.name.startsWith('allow'), record.value, line, record.text)
        break
      case 'crawl-delay':
        reader.delay(record.value)
        break
      case 'sitemap':
        if (record.value !== '') sitemaps.push(record.value)
        break
    }
  })
  const group = ours.found ? ours : everyones
  return {
    rules: group.rules,
    crawlDelayMs: group.crawlDelayMs,
    sitemaps,
    agent: ours.found ? wanted : everyones.found ? '*' : null,
  }
}

/**
 * Whether a URL (absolute, or a path with query) may be fetched: the longest matching pattern in octets decides, allow
 * wins a tie, /robots.txt itself is always allowed (RFC 9309 §2.2.2). Linear in path and pattern.
 *
 * Spellings: a disallow covers every spelling of a path, escaped or not; an allow, being the exception, covers what is
 * escaped as it is or less. `%2A` and `%24` are the characters, never wildcards.
 */
export function checkRobots(rules: RobotsRules, url: string): RobotsVerdict {
  const path = pathOf(url)
  if (path === '/robots.txt') return { allowed: true, line: null, rule: null }
  const written = escapePath(path, { decode: false, encode: false })
  const decoded = escapePath(path, { decode: true, encode: false })
  const full = escapePath(path, { decode: true, encode: true })
  let best: RobotsRule | undefined
  for (const rule of rules.rules) {
    if (best !== undefined) {
      const longer = rule.octets - best.octets
      if (longer < 0 || (longer === 0 && (best.allow || !rule.allow))) continue
    }
    const applies = rule.allow
      ? matches(rule.pattern, written) || (decoded !== written && matches(rule.pattern, decoded))
      : matches(rule.pattern, full)
    if (applies) best = rule
  }
  if (best === undefined) return { allowed: true, line: null, rule: null }
  return { allowed: best.allow, line: best.line, rule: best.text }
}

const maxLineBytes = 16_664
const byteOrderMark = [0xef, 0xbb, 0xbf]

interface Group {
  found: boolean
  rules: RobotsRule[]
  crawlDelayMs: number | null
}

function createGroup(): Group {
  return { found: false, rules: [], crawlDelayMs: null }
}

/** Follows which groups the lines are of. A line is for our group, for everyone's, for both or for neither. */
function createGroupReader(ours: Group, everyones: Group) {
  let open: Group[] = []
  let delayOpen: Group[] = []
  let ruleSeen = false
  let delaySeen = false
  return {
    agent(value: string, wanted: string): void {
      // Only a rule closes the list of agents; a delay, which is no part of the standard, does so for delays.
      if (ruleSeen) open = []
      if (ruleSeen || delaySeen) delayOpen = []
      ruleSeen = false
      delaySeen = false
      const group = isEveryone(value) ? everyones : wanted !== '' && productToken(value) === wanted ? ours : undefined
      if (group === undefined) return
      group.found = true
      if (!open.includes(group)) open.push(group)
      if (!delayOpen.includes(group)) delayOpen.push(group)
    },
    rule(allow: boolean, value: string, line: number, text: string): void {
      ruleSeen = true
      if (value === '') return
      // An index page stands for its directory (Google).
      const index = allow ? indexPage.exec(value) : null
      for (const path of index === null ? [value] : [value, `${value.slice(0, index.index + 1)}$`]) {
        const octets = escapePattern(path, true).length
        const rule = { allow, pattern: escapePattern(path, !allow), octets, line, text }
        for (const group of open) group.rules.push(rule)
      }
    },
    delay(value: string): void {
      delaySeen = true
      const delayMs = parseSeconds(value)
      if (delayMs === null) return
      for (const group of delayOpen) group.crawlDelayMs = Math.max(group.crawlDelayMs ?? 0, delayMs)
    },
  }
}

const indexPage = /\/index\.htm[^/]*$/

function isEveryone(value: string): boolean {
  return value === '*' || /^\*\s/.test(value)
}

/** The leading A-Z a-z _ - of a user-agent line's value, lower case. */
function productToken(value: string): string {
  return /^[A-Za-z_-]*/.exec(value)![0].toLowerCase()
}

/** Seconds with fractions → milliseconds; null = no number. Whoever uses it clamps it. */
function parseSeconds(value: string): number | null {
  const match = /^\d{1,12}(?:\.\d{0,12})?|^\.\d{1,12}/.exec(value)
  return match === null ? null : Math.round(Number(match[0]) * 1000)
}

/** Lines end with CR, LF or CRLF. Each is cut at 16,664 bytes; a line that the size bound cuts is not read. */
function forEachLine(body: Uint8Array, each: (text: string, line: number) => void): void {
  const end = Math.min(body.length, maxRobotsBytes)
  let start = 0
  // Also a part of the mark, as it is left by careless tools.
  while (start < 3 && body[start] === byteOrderMark[start]) start++
  let line = 0
  for (let i = start; i <= end; i++) {
    const byte = body[i]
    if (i < end && byte !== 0x0a && byte !== 0x0d) continue
    if (i === end && end < body.length && byte !== 0x0a && byte !== 0x0d) return
    line++
    if (i > start) {
      const lineEnd = Math.min(i, start + maxLineBytes)
      each(Buffer.prototype.utf8Slice.call(body, start, lineEnd), line)
    }
    if (i < end && byte === 0x0d && body[i + 1] === 0x0a) i++
    start = i + 1
  }
}

function splitRecord(line: string): { name: string; value: string; text: string } | undefined {
  const comment = line.indexOf('#')
  const text = trimBlanks(comment < 0 ? line : line.slice(0, comment))
  let separator = text.indexOf(':')
  if (separator < 0) {
    // A forgotten colon, where there are two words and no more.
    separator = text.search(/[ \t]/)
    if (separator < 0 || /[ \t]/.test(trimBlanks(text.slice(separator)))) return undefined
  }
  const name = trimBlanks(text.slice(0, separator)).toLowerCase()
  if (name === '') return undefined
  return { name, value: trimBlanks(text.slice(separator + 1)), text }
}

/** ASCII blanks and controls alone: a byte order mark inside the file makes its line unknown. */
function trimBlanks(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && text.charCodeAt(start) <= 0x20) start++
  while (end > start && text.charCodeAt(end - 1) <= 0x20) end--
  return text.slice(start, end)
}

type RecordKind = 'user-agent' | 'allow' | 'disallow' | 'crawl-delay' | 'sitemap' | 'other'

const spellings: readonly (readonly [RecordKind, readonly string[]])[] = [
  ['user-agent', ['user-agent', 'useragent', 'user agent']],
  ['allow', ['allow']],
  ['disallow', ['disallow', 'dissallow', 'dissalow', 'disalow', 'diasllow', 'disallaw']],
  ['crawl-delay', ['crawl-delay', 'crawldelay', 'crawl delay']],
  ['sitemap', ['sitemap', 'site-map']],
]

/** By the beginning of the name, as Google's parser does. */
function recordKind(name: string): RecordKind {
  for (const [kind, names] of spellings) if (names.some((known) => name.startsWith(known))) return kind
  return 'other'
}

/** Path and query of a URL, `/` where there is none; the fragment is cut. */
function pathOf(url: string): string {
  const hash = url.indexOf('#')
  const text = hash < 0 ? url : url.slice(0, hash)
  const scheme = /^[A-Za-z][A-Za-z0-9+.-]{0,31}:\/\//.exec(text)
  if (scheme === null) return text.startsWith('/') ? text : `/${text}`
  const start = text.slice(scheme[0].length).search(/[/?]/)
  if (start < 0) return '/'
  const path = text.slice(scheme[0].length + start)
  return path.startsWith('/') ? path : `/${path}`
}

/** A pattern's `*` and final `$` stay; a `$` elsewhere is a character. */
function escapePattern(value: string, decode: boolean): string {
  const anchored = value.endsWith('$')
  const body = anchored ? value.slice(0, -1) : value
  const escaped = body
    .split('*')
    .map((part) => escapePath(part, { decode, encode: true }))
    .join('*')
  return anchored ? `${escaped}$` : escaped
}

/**
 * Hexadecimal digits upper-case, `*` and `$` as escapes; with `decode` unreserved characters decoded, with `encode`
 * what a serialized URL never holds (beyond ASCII, blanks, quotes and angle brackets) escaped as UTF-8.
 */
function escapePath(text: string, how: { decode: boolean; encode: boolean }): string {
  if (!special.test(text)) return text
  return text.replace(specials, (match) => {
    if (match === '*') return '%2A'
    if (match === '$') return '%24'
    if (match.charCodeAt(0) !== 0x25) return how.encode ? encodeURIComponent(match.toWellFormed()) : match
    const octet = escapedOctet(match, 0)
    return how.decode && isUnreserved(octet) ? String.fromCharCode(octet) : match.toUpperCase()
  })
}

const special = /[%*$ "<>\u0080-\uffff]/
const specials = /%[0-9A-Fa-f]{2}|[*$]|[ "<>\u0080-\uffff]+/g

/** Whether a pattern matches a path from its start: each part between stars is taken at its first place. */
function matches(pattern: string, path: string): boolean {
  const anchored = pattern.endsWith('$')
  const end = anchored ? pattern.length - 1 : pattern.length
  let star = pattern.indexOf('*')
  if (star < 0 || star >= end) {
    return anchored ? path.length === end && pattern.startsWith(path) : path.startsWith(pattern)
  }
  if (!path.startsWith(pattern.slice(0, star))) return false
  let at = star
  for (;;) {
    const from = star + 1
    star = pattern.indexOf('*', from)
    if (star < 0) {
      const last = pattern.slice(from, end)
      return anchored ? path.length - last.length >= at && path.endsWith(last) : path.indexOf(last, at) >= 0
    }
    const part = pattern.slice(from, star)
    const found = path.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
}
