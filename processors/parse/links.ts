import { createLinksWriter, maxLinks } from '../../schemas/links.ts'
import { type LinkKind, linkFlags } from '../../schemas/types.ts'
import { type ByteSet, createByteSet } from './byte-set.ts'
import { decodeAttribute } from './references.ts'

/**
 * Collects the links of one page: every distinct href once, in the order of first sight, with the kind it was first
 * seen as. A link is `nofollow` if each of its occurrences is.
 */
export interface LinkCollector {
  reset(): void
  /** `href` as the page has it, references decoded; relative to the page's base. */
  add(kind: LinkKind, href: string, nofollow: boolean): void
  /** The same for the attribute's value in page[start..end), references not yet decoded. */
  addRaw(kind: LinkKind, page: Buffer, start: number, end: number, nofollow: boolean): void
  /** `allNofollow`: the whole page asks not to follow. */
  write(allNofollow: boolean): WrittenLinks
}

export interface WrittenLinks {
  /** In the shape of `schemas/links.ts`. */
  readonly links: Uint8Array
  readonly linkCount: number
  /** Left out because of the bounds; past them repeats are not told apart. */
  readonly excessCount: number
}

export function createLinkCollector(): LinkCollector {
  const writer = createLinksWriter()
  const hrefs = createByteSet(maxLinks)
  const kinds: LinkKind[] = []
  const flags: number[] = []
  let excess = 0

  return {
    reset() {
      hrefs.reset()
      kinds.length = flags.length = excess = 0
    },
    add,
    addRaw(kind, page, start, end, nofollow) {
      if (copyPlain(hrefs, page, start, end)) keep(kind, nofollow)
      else add(kind, decodeAttribute(page.toString('utf8', start, end)), nofollow)
    },
    write(allNofollow) {
      writer.reset()
      const all = allNofollow ? linkFlags.nofollow : 0
      for (let i = 0; i < kinds.length; i++) {
        writer.addBytes(kinds[i]!, flags[i]! | all, hrefs.bytes, hrefs.starts[i]!, hrefs.starts[i + 1]!)
      }
      return { links: writer.bytes(), linkCount: writer.count, excessCount: writer.excessCount + excess }
    },
  }

  function add(kind: LinkKind, raw: string, nofollow: boolean): void {
    const href = cleanHref(raw)
    hrefs.reserve(3 * href.length)
    hrefs.end += hrefs.bytes.write(href, hrefs.end)
    keep(kind, nofollow)
  }

  /** The href is what stands at the set's end. */
  function keep(kind: LinkKind, nofollow: boolean): void {
    const start = hrefs.starts[kinds.length]!
    // A fragment alone, like no href at all, is the page itself.
    if (hrefs.end === start || hrefs.bytes[start] === 35) {
      hrefs.end = start
      return
    }
    const flag = nofollow ? linkFlags.nofollow : 0
    const index = hrefs.add()
    if (index < 0) excess++
    else if (index < kinds.length) flags[index]! &= flag
    else {
      kinds.push(kind)
      flags.push(flag)
    }
  }
}

/**
 * Copies an attribute's value to the set's end if it is ASCII that needs no cleaning, as most are; `&amp;` is decoded.
 * False: nothing is copied.
 */
function copyPlain(to: ByteSet, page: Buffer, start: number, end: number): boolean {
  to.reserve(end - start)
  const { bytes } = to
  let w = to.end
  for (let i = start; i < end; i++) {
    const byte = page[i]!
    if (byte <= 32 || byte >= 0x80) return false
    bytes[w++] = byte
    if (byte !== 38) continue
    if (page[i + 1] !== 97 || page[i + 2] !== 109 || page[i + 3] !== 112 || page[i + 4] !== 59) return false
    i += 4
  }
  to.end = w
  return true
}

/** What URL parsing does first: control characters and spaces trimmed, tabs and line ends removed (URL standard, 4.4). */
export function cleanHref(raw: string): string {
  let start = 0
  let end = raw.length
  while (start < end && raw.charCodeAt(start) <= 32) start++
  while (end > start && raw.charCodeAt(end - 1) <= 32) end--
  const trimmed = start === 0 && end === raw.length ? raw : raw.slice(start, end)
  return lineEnds.test(trimmed) ? trimmed.replace(/[\t\n\r]+/g, '') : trimmed
}

const lineEnds = /[\t\n\r]/

/** Whether a space-separated list has the token; case does not count. */
export function hasToken(list: string, token: string): boolean {
  return (
    list.length >= token.length &&
    list
      .toLowerCase()
      .split(/[\t\n\f\r ]+/)
      .includes(token)
  )
}

/** The URL of a refresh, `5; url=/next` (HTML, "shared declarative refresh steps"); undefined = none, or the page itself. */
export function refreshTarget(content: string): string | undefined {
  const delay = /^[\t\n\f\r ]*[\d.]+/.exec(content)
  if (delay === null) return undefined
  const separator = /^[\t\n\f\r ]*[;,]?[\t\n\f\r ]*/.exec(content.slice(delay[0].length))![0]
  if (separator === '') return undefined
  let rest = content.slice(delay[0].length + separator.length)
  const prefix = /^url[\t\n\f\r ]*=[\t\n\f\r ]*/i.exec(rest)
  if (prefix !== null) rest = rest.slice(prefix[0].length)
  const quote = rest[0]
  if (quote === '"' || quote === "'") {
    const close = rest.indexOf(quote, 1)
    rest = rest.slice(1, close < 0 ? undefined : close)
  }
  return rest === '' ? undefined : rest
}
