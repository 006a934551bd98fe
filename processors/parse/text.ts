import { maxReferenceName, referenceAt } from './references.ts'
import { bitsOf, tagBits, tagId } from './tags.ts'

/** `main`: what the page is about; `body`: all that a reader sees, for pages of which too little would be left. */
export type TextScope = 'main' | 'body'

/**
 * Collects a page's text as UTF-8 into one buffer, one line a block, spaces collapsed. A block that turns out to be
 * boilerplate is taken back by moving the end. Navigation, headers, footers, asides and forms are left out (a header or
 * footer inside an article is the article's own), and blocks that are short or mostly links (Kohlschütter et al.,
 * "Boilerplate Detection using Shallow Text Features", WSDM 2010); a few short ones just before a long one, such as its
 * heading, stay. Articles and the main element win over what is around them.
 */
export interface TextCollector {
  begin(bytes: Buffer, scope: TextScope): void
  startTag(tag: number): void
  endTag(tag: number): void
  /** A start tag of `a`: whether it is a link. */
  openLink(isLink: boolean): void
  /** Text between tags, references not yet decoded. */
  add(start: number, end: number): void
  /** Whether what follows cannot reach the text, inside a template above all. */
  readonly inTemplate: boolean
  /** Ends the page. The bytes are valid until the next `begin`. */
  end(): Buffer
  /** Words in what was kept; a character of a script that writes no spaces counts as one. */
  readonly wordCount: number
}

export interface TextOptions {
  readonly maxTextBytes: number
}

const minBlockWords = 10
const maxLinkShare = 0.5
const maxPendingBlocks = 3
const minArticleWords = 50
const minArticleShare = 0.25
const maxOpenElements = 512

export function createTextCollector(options: TextOptions): TextCollector {
  const { maxTextBytes } = options
  const out = Buffer.allocUnsafe(maxTextBytes)
  // A space, a character or a decoded reference, and the line end are written before the bound is looked at again.
  const limit = maxTextBytes - 32
  const open = new Uint8Array(maxOpenElements)
  const openCount = new Uint32Array(256)
  let page: Buffer = out
  let main = true
  let depth = 0
  let dropDepth = 0
  let templateDepth = 0
  let articleDepth = 0
  let inLink = false
  let length = 0
  let blockStart = 0
  let words = 0
  let linkWords = 0
  let wordCount = 0
  // Blocks after the last kept one that wait for the next one's fate.
  let keptEnd = 0
  let pendingWords = 0
  let pendingBlocks = 0
  let articleWords = 0
  let articleRanges: number[] = []
  // Word boundaries are known across inline tags.
  let inWord = false
  let pendingSpace = false

  return {
    begin(bytes, scope) {
      page = bytes
      main = scope === 'main'
      open.fill(0, 0, depth)
      openCount.fill(0)
      depth = dropDepth = templateDepth = articleDepth = 0
      inLink = inWord = pendingSpace = false
      length = blockStart = words = linkWords = wordCount = 0
      keptEnd = pendingWords = pendingBlocks = articleWords = 0
      articleRanges = []
    },
    startTag(tag) {
      const bits = bitsOf[tag]!
      if ((bits & tagBits.block) !== 0) endBlock()
      if ((bits & tagBits.container) !== 0 && depth < maxOpenElements) {
        open[depth++] = tag
        openCount[tag]!++
        enter(tag, bits, 1)
      }
    },
    endTag(tag) {
      const bits = bitsOf[tag]!
      if ((bits & tagBits.block) !== 0) endBlock()
      if (tag === aTag) inLink = false
      if ((bits & tagBits.container) !== 0 && openCount[tag]! > 0) close(tag)
    },
    openLink(isLink) {
      inLink = isLink
    },
    add,
    get inTemplate() {
      return templateDepth > 0
    },
    end() {
      endBlock()
      if (main) keepArticles()
      return out.subarray(0, keptEnd > 0 && out[keptEnd - 1] === 10 ? keptEnd - 1 : keptEnd)
    },
    get wordCount() {
      return wordCount
    },
  }

  function enter(tag: number, bits: number, by: 1 | -1): void {
    if (tag === templateTag) templateDepth += by
    if (tag === articleTag || tag === mainTag) articleDepth += by
    if ((bits & tagBits.dropped) === 0) return
    // Counted by how it was when it opened, so that closing takes back the same.
    if (by === 1) {
      const own = (tag === headerTag || tag === footerTag) && articleDepth > 0
      if (own || (!main && (bits & tagBits.block) !== 0)) {
        open[depth - 1] = tag | keptBit
        return
      }
    }
    dropDepth += by
  }

  /** Closes the innermost open element of this name, and what is open inside it; a template is closed only by its own end tag. */
  function close(tag: number): void {
    if (templateDepth > 0 && tag !== templateTag) {
      let i = depth - 1
      while ((open[i]! & ~keptBit) !== tag) if ((open[i--]! & ~keptBit) === templateTag) return
    }
    for (;;) {
      const entry = open[--depth]!
      const top = entry & ~keptBit
      openCount[top]!--
      if (entry === top) enter(top, bitsOf[top]!, -1)
      if (top === tag) return
    }
  }

  function endBlock(): void {
    inWord = false
    pendingSpace = false
    if (length === blockStart) return
    const mostlyLinks = linkWords > words * maxLinkShare
    if (!main || (words >= minBlockWords && !mostlyLinks)) {
      pendingWords += words
      out[length++] = 10
      keep()
    } else if (!mostlyLinks && pendingBlocks < maxPendingBlocks) {
      pendingWords += words
      pendingBlocks++
      out[length++] = 10
    } else {
      length = keptEnd
      pendingWords = pendingBlocks = 0
    }
    blockStart = length
    words = linkWords = 0
  }

  /** Keeps what was written since the last kept block: short blocks before this one, and this one. */
  function keep(): void {
    wordCount += pendingWords
    if (articleDepth > 0) {
      articleWords += pendingWords
      if (articleRanges.at(-1) === keptEnd) articleRanges[articleRanges.length - 1] = length
      else articleRanges.push(keptEnd, length)
    }
    keptEnd = length
    pendingWords = pendingBlocks = 0
  }

  /** Where a page marks its articles, or its main part, and they are no mere corner of it, the rest is not main text. */
  function keepArticles(): void {
    if (articleWords < minArticleWords || articleWords < wordCount * minArticleShare) return
    let to = 0
    for (let i = 0; i < articleRanges.length; i += 2) {
      const start = articleRanges[i]!
      const end = articleRanges[i + 1]!
      out.copyWithin(to, start, end)
      to += end - start
    }
    keptEnd = to
    wordCount = articleWords
  }

  function add(start: number, end: number): void {
    if (dropDepth > 0) return
    // Locals, since this loop sees every byte of text.
    const bytes = page
    const kinds = byteKinds
    let to = length
    let i = start
    let wordOpen = inWord
    let gap = pendingSpace
    let count = 0
    while (i < end && to < limit) {
      let byte = bytes[i]!
      let kind = kinds[byte]!
      if ((kind & space) !== 0) {
        wordOpen = false
        gap = true
        i++
        continue
      }
      if (kind === ampersand) {
        inWord = wordOpen
        pendingSpace = gap
        i = reference(i, end, to)
        wordOpen = inWord
        gap = pendingSpace
        to = length
        continue
      }
      if (kind === wide) {
        const size = byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4
        const second = bytes[i + 1]!
        if ((byte === 0xc2 && second === 0xa0) || (byte === 0xe3 && second === 0x80 && bytes[i + 2] === 0x80)) {
          wordOpen = false
          gap = true
          i += size
          continue
        }
        if (gap && to > blockStart) out[to++] = 32
        gap = false
        const unspaced = isUnspaced(byte, second)
        const punctuation = isPunctuation(byte, second)
        if (unspaced || (!wordOpen && !punctuation)) count++
        wordOpen = !unspaced && !punctuation
        for (const stop = Math.min(end, i + size); i < stop; i++) out[to++] = bytes[i]!
        continue
      }
      if (gap && to > blockStart) out[to++] = 32
      gap = false
      if (kind === nul) {
        wordOpen = false
        i++
        continue
      }
      // A run of ASCII is copied as it stands, single spaces included, without a branch a word: they cannot be foreseen,
      // and cost more than all else here.
      const stop = Math.min(end, i + limit - to)
      let last = wordOpen ? word : other
      do {
        out[to++] = byte
        count += kind & ~last & word
        last = kind
        byte = bytes[++i]!
        kind = kinds[byte]!
      } while (i < stop && (kind & (last | special) & ~word) === 0)
      wordOpen = last === word
      if (last === space) {
        to--
        gap = true
      }
    }
    length = to
    inWord = wordOpen
    pendingSpace = gap
    words += count
    if (inLink) linkWords += count
  }

  /** Writes what the reference at `i` stands for, from `to` on; returns where it ends in the page. */
  function reference(i: number, end: number, to: number): number {
    let stop = i + 1
    const last = Math.min(end, i + 2 + maxReferenceName)
    while (stop < last && byteKinds[page[stop]!] === word) stop++
    if (stop === i + 1 && page[stop] === 35) {
      stop++
      while (stop < end && byteKinds[page[stop]!] === word) stop++
    }
    if (stop < end && page[stop] === 59) stop++
    const found = stop - i > maxReferenceBytes ? undefined : referenceAt(page.toString('latin1', i, stop), 0, false)
    const decoded = found === undefined ? '&' : found.text
    const next = found === undefined ? i + 1 : i + found.end
    if (decoded === '\u00a0' || decoded.trim() === '') {
      inWord = false
      pendingSpace = true
      length = to
      return next
    }
    if (pendingSpace && to > blockStart) out[to++] = 32
    pendingSpace = false
    const letter = /[\p{L}\p{N}\p{M}]/u.test(decoded)
    if (letter && !inWord) {
      words++
      if (inLink) linkWords++
    }
    inWord = letter
    length = to + out.write(decoded, to)
    return next
  }
}

/** Numeric references may have any number of digits; longer ones are left as they are. */
const maxReferenceBytes = 256
const keptBit = 0x80

const aTag = tagId('a')
const articleTag = tagId('article')
const mainTag = tagId('main')
const headerTag = tagId('header')
const footerTag = tagId('footer')
const templateTag = tagId('template')

const other = 0
const word = 1
const space = 2
/** What the loop over plain text leaves to others. */
const special = 4
const ampersand = special
const wide = special | 8
const nul = special | 16
const byteKinds = Uint8Array.from({ length: 256 }, (_, byte) => {
  if (byte >= 0x80) return wide
  if (byte === 0) return nul
  if (byte === 38) return ampersand
  if (byte === 32) return space
  if (byte >= 9 && byte <= 13) return space | special
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
