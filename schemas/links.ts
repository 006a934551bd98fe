import { SchemaError } from './errors.ts'
import { type LinkKind, linkKinds } from './types.ts'

/** What one record of `discovered-urls` may carry. */
export const maxLinks = 5_000
export const maxLinksBytes = 256 * 1024

/**
 * Builds a links blob: repeated {u8 linkKind, u8 flags, varint length (unsigned LEB128), UTF-8}. A kind is its index
 * in `linkKinds`, so new kinds are added at the end.
 */
export interface LinksWriter {
  /** False when the link would take the blob over 5,000 links or 256 KiB: it is left out and counted as excess. */
  add(kind: LinkKind, flags: number, href: string): boolean
  /** The same for an href that is there as UTF-8, in bytes[start..end). */
  addBytes(kind: LinkKind, flags: number, bytes: Uint8Array, start: number, end: number): boolean
  readonly count: number
  readonly excessCount: number
  /** A copy of what was added. */
  bytes(): Buffer
  /** Empties the writer for its next page. */
  reset(): void
}

export function createLinksWriter(): LinksWriter {
  let buffer = Buffer.allocUnsafe(8 * 1024)
  let end = 0
  let count = 0
  let excessCount = 0
  return {
    add(kind, flags, href) {
      const length = Buffer.byteLength(href)
      if (!begin(kind, flags, length)) return false
      buffer.write(href, end, length, 'utf8')
      end += length
      return true
    },
    addBytes(kind, flags, bytes, from, to) {
      if (!begin(kind, flags, to - from)) return false
      for (let i = from; i < to; i++) buffer[end++] = bytes[i]!
      return true
    },
    get count() {
      return count
    },
    get excessCount() {
      return excessCount
    },
    bytes() {
      return Buffer.from(buffer.subarray(0, end))
    },
    reset() {
      end = 0
      count = 0
      excessCount = 0
    },
  }

  /** Makes room for an href of this many bytes and writes what stands before it. */
  function begin(kind: LinkKind, flags: number, length: number): boolean {
    const next = end + 2 + varintLength(length) + length
    if (count >= maxLinks || next > maxLinksBytes) {
      excessCount++
      return false
    }
    if (next > buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(next, Math.min(2 * buffer.length, maxLinksBytes)))
      buffer.copy(larger, 0, 0, end)
      buffer = larger
    }
    buffer[end++] = kindIndex[kind]
    buffer[end++] = flags
    let rest = length
    while (rest > 0x7f) {
      buffer[end++] = (rest & 0x7f) | 0x80
      rest >>>= 7
    }
    buffer[end++] = rest
    count++
    return true
  }
}

/**
 * Calls `each` with every link in order; the href is `blob[start..end)`, UTF-8. A kind from a later version reads as
 * `anchor`, as an unknown Avro symbol reads as its default. Throws SchemaError `links-malformed`.
 */
export function readLinks(
  blob: Uint8Array,
  each: (kind: LinkKind, flags: number, start: number, end: number) => void,
): void {
  for (let at = 0; at < blob.length; ) at = readLink(blob, at, each)
}

export interface Link {
  readonly kind: LinkKind
  readonly flags: number
  readonly href: string
}

/** The links of a blob as strings, one at a time. Throws SchemaError `links-malformed` where the blob is broken. */
export function* iterateLinks(blob: Uint8Array): Generator<Link> {
  let link: Link | undefined
  const keep = (kind: LinkKind, flags: number, start: number, end: number): void => {
    link = { kind, flags, href: Buffer.prototype.utf8Slice.call(blob, start, end) }
  }
  for (let at = 0; at < blob.length; ) {
    at = readLink(blob, at, keep)
    yield link!
  }
}

const kindIndex = Object.fromEntries(linkKinds.map((kind, i) => [kind, i])) as { [kind in LinkKind]: number }

function readLink(
  blob: Uint8Array,
  at: number,
  each: (kind: LinkKind, flags: number, start: number, end: number) => void,
): number {
  let start = at + 2
  let length = 0
  for (let shift = 0; ; shift += 7) {
    const byte = blob[start++]
    if (byte === undefined || shift > 21) throw malformed(blob, at, byte === undefined ? 'is cut' : 'has no length')
    length |= (byte & 0x7f) << shift
    if (byte < 0x80) break
  }
  const end = start + length
  if (end > blob.length) throw malformed(blob, at, 'is cut')
  each(linkKinds[blob[at]!] ?? 'anchor', blob[at + 1]!, start, end)
  return end
}

function malformed(blob: Uint8Array, at: number, what: string): SchemaError {
  return new SchemaError('links-malformed', `reading links: the one at byte ${at} of ${blob.length} ${what}`)
}

function varintLength(value: number): number {
  return value < 0x80 ? 1 : value < 0x4000 ? 2 : value < 0x200000 ? 3 : 4
}
