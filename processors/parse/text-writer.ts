import { createTextReferences } from './text-references.ts'

/** Text being written: UTF-8, spaces collapsed. */
export interface TextWriter {
  readonly out: Buffer
  /** Bytes written. */
  length: number
  /** Where the current block starts; no space is written there. */
  blockStart: number
  /** Words begun since the caller last set it to 0; a character of a script that writes no spaces counts as one. */
  words: number
  /** Word boundaries are known across inline tags. */
  inWord: boolean
  pendingSpace: boolean
  /** Appends page[start..end), references not yet decoded, until the bound is reached. */
  write(page: Buffer, start: number, end: number): void
}

export function createTextWriter(maxBytes: number): TextWriter {
  // A space, a character or a decoded reference, and a line end are written before the bound is looked at again.
  const limit = maxBytes - 32
  const referenceAt = createTextReferences()
  const writer: TextWriter = {
    out: Buffer.allocUnsafe(maxBytes),
    length: 0,
    blockStart: 0,
    words: 0,
    inWord: false,
    pendingSpace: false,
    write(page, start, end) {
      let i = start
      while (i < end && writer.length < limit) {
        i = writePlain(writer, page, i, end, limit)
        if (i >= end || writer.length >= limit) break
        const byte = page[i]!
        if (byte === 38) i = writeReference(page, i, end)
        else if (byte >= 0x80) i = writeWide(writer, page, i, end, limit)
        else {
          // A zero byte is dropped.
          startCharacter(writer)
          writer.inWord = false
          i++
        }
      }
    },
  }
  return writer

  function writeReference(page: Buffer, start: number, end: number): number {
    const { length, utf8, isSpace, isWord } = referenceAt(page, start, end)
    if (isSpace) {
      writer.inWord = false
      writer.pendingSpace = true
      return start + length
    }
    startCharacter(writer)
    if (isWord && !writer.inWord) writer.words++
    writer.inWord = isWord
    for (let k = 0; k < utf8.length; k++) writer.out[writer.length++] = utf8[k]!
    return start + length
  }
}

/** Writes ASCII up to the first byte that it does not know, and returns where that is. */
function writePlain(writer: TextWriter, page: Buffer, start: number, end: number, limit: number): number {
  const { out, blockStart } = writer
  const kinds = byteKinds
  let to = writer.length
  let i = start
  let last = writer.inWord ? word : other
  let gap = writer.pendingSpace
  let words = 0
  while (i < end && to < limit) {
    let byte = page[i]!
    let kind = kinds[byte]!
    if (kind >= space) {
      if ((kind & space) === 0) break
      last = other
      gap = true
      i++
      continue
    }
    if (gap && to > blockStart) out[to++] = 32
    gap = false
    // A run is copied as it stands, single spaces included, without a branch a word: they cannot be foreseen, and cost
    // more than all else here.
    const stop = Math.min(end, i + limit - to)
    do {
      out[to++] = byte
      words += kind & ~last & word
      last = kind
      byte = page[++i]!
      kind = kinds[byte]!
    } while (i < stop && (kind & (last | special) & ~word) === 0)
    if (last === space) {
      to--
      gap = true
    }
  }
  writer.length = to
  writer.inWord = last === word
  writer.pendingSpace = gap
  writer.words += words
  return i
}

/** The same for characters beyond ASCII. */
function writeWide(writer: TextWriter, page: Buffer, start: number, end: number, limit: number): number {
  const { out, blockStart } = writer
  let to = writer.length
  let i = start
  let inWord = writer.inWord
  let gap = writer.pendingSpace
  let words = 0
  do {
    const lead = page[i]!
    if (lead < 0x80) break
    const second = page[i + 1]!
    const size = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4
    if ((lead === 0xc2 && second === 0xa0) || (lead === 0xe3 && second === 0x80 && page[i + 2] === 0x80)) {
      inWord = false
      gap = true
      i += size
      continue
    }
    if (gap && to > blockStart) out[to++] = 32
    gap = false
    const unspaced = isUnspaced(lead, second)
    const punctuation = isPunctuation(lead, second)
    if (unspaced || (!inWord && !punctuation)) words++
    inWord = !unspaced && !punctuation
    for (const stop = Math.min(end, i + size); i < stop; i++) out[to++] = page[i]!
  } while (i < end && to < limit)
  writer.length = to
  writer.inWord = inWord
  writer.pendingSpace = gap
  writer.words += words
  return i
}

function startCharacter(writer: TextWriter): void {
  if (writer.pendingSpace && writer.length > writer.blockStart) writer.out[writer.length++] = 32
  writer.pendingSpace = false
}

const other = 0
const word = 1
const space = 2
/** Not copied as it stands. */
const special = 4
const byteKinds = Uint8Array.from({ length: 256 }, (_, byte) => {
  if (byte === 32) return space
  if (byte >= 9 && byte <= 13) return space | special
  if (byte >= 0x80 || byte === 0 || byte === 38) return special
  return /[0-9A-Za-z]/.test(String.fromCharCode(byte)) ? word : other
})

/** Scripts without spaces, by their UTF-8 lead bytes: Thai, Lao; Myanmar, Khmer; kana and Han (Hangul has spaces). */
function isUnspaced(lead: number, second: number): boolean {
  if (lead >= 0xe3 && lead <= 0xe9) return lead !== 0xe3 || second >= 0x81
  if (lead === 0xe0) return second >= 0xb8 && second <= 0xbb
  return lead === 0xe1 && (second <= 0x82 || second === 0x9e || second === 0x9f)
}

/** U+0080-00BF and general punctuation, U+2000-206F. */
function isPunctuation(lead: number, second: number): boolean {
  return lead === 0xc2 || (lead === 0xe2 && (second === 0x80 || second === 0x81))
}
