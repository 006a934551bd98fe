import { createLinksWriter, maxLinks } from '../../schemas/links.ts'
import { type LinkKind, linkFlags } from '../../schemas/types.ts'

/**
 * Collects the links of one page: every distinct href once, in the order of first sight, with the kind it was first
 * seen as. A link is `nofollow` if each of its occurrences is.
 */
export interface LinkCollector {
  reset(): void
  /** `href` as the page has it, references decoded; relative to the page's base. */
  add(kind: LinkKind, href: string, nofollow: boolean): void
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
  const indexes = new Map<string, number>()
  const kinds: LinkKind[] = []
  const flags: number[] = []
  let excess = 0

  return {
    reset() {
      indexes.clear()
      kinds.length = flags.length = excess = 0
    },
    add(kind, raw, nofollow) {
      const href = cleanHref(raw)
      // A fragment alone, like no href at all, is the page itself.
      if (href === '' || href.charCodeAt(0) === 35) return
      const flag = nofollow ? linkFlags.nofollow : 0
      const known = indexes.get(href)
      if (known !== undefined) flags[known]! &= flag
      else if (indexes.size >= maxLinks) excess++
      else {
        indexes.set(href, kinds.length)
        kinds.push(kind)
        flags.push(flag)
      }
    },
    write(allNofollow) {
      writer.reset()
      const all = allNofollow ? linkFlags.nofollow : 0
      for (const [href, i] of indexes) writer.add(kinds[i]!, flags[i]! | all, href)
      return { links: writer.bytes(), linkCount: writer.count, excessCount: writer.excessCount + excess }
    },
  }
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
