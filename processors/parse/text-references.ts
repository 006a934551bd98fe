import { maxReferenceName, referenceAt } from './references.ts'

/** A character reference as the text collector needs it. */
export interface TextReference {
  /** Bytes in the page that it is for; those after it are plain text. */
  readonly length: number
  readonly utf8: Uint8Array
  readonly isSpace: boolean
  /** It is part of a word. */
  readonly isWord: boolean
}

/**
 * Reads the reference at `page[start]`, which is `&`; a plain ampersand is one that stands for itself. Pages repeat a
 * few, so the last ones are kept, by their bytes, in a table of fixed size.
 */
export function createTextReferences(): (page: Buffer, start: number, end: number) => TextReference {
  const known: (Known | undefined)[] = new Array<undefined>(slots).fill(undefined)

  return (page, start, end) => {
    let stop = start + 1
    let hash = 0
    for (const last = Math.min(end, start + maxKnownBytes); stop < last; stop++) {
      const byte = page[stop]!
      hash = (Math.imul(hash, 31) + byte) | 0
      if (byte === semicolon || byte <= space) break
    }
    // What a reference without semicolon means depends on what follows.
    if (stop >= end || page[stop] !== semicolon) return decode(page, start, end)
    const slot = (hash ^ (hash >>> 8)) & (slots - 1)
    const found = known[slot]
    if (found !== undefined && equals(found.raw, page, start, stop)) return found.reference
    const reference = decode(page, start, end)
    if (reference.length === stop + 1 - start) {
      known[slot] = { raw: Uint8Array.from(page.subarray(start, stop + 1)), reference }
    }
    return reference
  }
}

interface Known {
  readonly raw: Uint8Array
  readonly reference: TextReference
}

const slots = 256
const maxKnownBytes = 16
const semicolon = 59
const space = 32
/** Numeric references may have any number of digits; longer ones are left as they are. */
const maxReferenceBytes = 256

function equals(raw: Uint8Array, page: Buffer, start: number, stop: number): boolean {
  if (raw.length !== stop + 1 - start) return false
  let i = raw.length - 1
  while (i > 0 && raw[i] === page[start + i]) i--
  return i === 0
}

function decode(page: Buffer, start: number, end: number): TextReference {
  let stop = start + 1
  const last = Math.min(end, start + 2 + maxReferenceName)
  while (stop < last && isAlphanumeric(page[stop]!)) stop++
  if (stop === start + 1 && page[stop] === 35) {
    stop++
    while (stop < end && isAlphanumeric(page[stop]!)) stop++
  }
  if (stop < end && page[stop] === semicolon) stop++
  const found =
    stop - start > maxReferenceBytes ? undefined : referenceAt(page.toString('latin1', start, stop), 0, false)
  const { text, end: length } = found ?? plain
  const isSpace = text.trim() === ''
  return { length, utf8: Buffer.from(text), isSpace, isWord: !isSpace && /[\p{L}\p{N}\p{M}]/u.test(text) }
}

const plain = { text: '&', end: 1 }

function isAlphanumeric(byte: number): boolean {
  const letter = byte | 32
  return (byte >= 48 && byte <= 57) || (letter >= 97 && letter <= 122)
}
