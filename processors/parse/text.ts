import { bitsOf, tagBits, tagId } from './tags.ts'
import { createTextWriter } from './text-writer.ts'

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
  /** Words seen, what was taken back included; navigation and the like are not among them. */
  readonly seenWords: number
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
  const writer = createTextWriter(options.maxTextBytes)
  const { out } = writer
  const open = new Uint8Array(maxOpenElements)
  const openCount = new Uint32Array(256)
  let page: Buffer = out
  let main = true
  let depth = 0
  let dropDepth = 0
  let templateDepth = 0
  let articleDepth = 0
  let inLink = false
  let words = 0
  let linkWords = 0
  let wordCount = 0
  let seenWords = 0
  // Blocks after the last kept one that wait for the next one's fate.
  let keptEnd = 0
  let pendingWords = 0
  let pendingBlocks = 0
  let articleWords = 0
  let articleRanges: number[] = []

  return {
    begin(bytes, scope) {
      page = bytes
      main = scope === 'main'
      open.fill(0, 0, depth)
      openCount.fill(0)
      depth = dropDepth = templateDepth = articleDepth = 0
      inLink = writer.inWord = writer.pendingSpace = false
      writer.length = writer.blockStart = writer.words = 0
      words = linkWords = wordCount = seenWords = 0
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
    add(start, end) {
      if (dropDepth > 0) return
      writer.write(page, start, end)
      words += writer.words
      seenWords += writer.words
      if (inLink) linkWords += writer.words
      writer.words = 0
    },
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
    get seenWords() {
      return seenWords
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
    writer.inWord = false
    writer.pendingSpace = false
    if (writer.length === writer.blockStart) return
    const mostlyLinks = linkWords > words * maxLinkShare
    if (!main || (words >= minBlockWords && !mostlyLinks)) {
      pendingWords += words
      out[writer.length++] = 10
      keep()
    } else if (!mostlyLinks && pendingBlocks < maxPendingBlocks) {
      pendingWords += words
      pendingBlocks++
      out[writer.length++] = 10
    } else {
      writer.length = keptEnd
      pendingWords = pendingBlocks = 0
    }
    writer.blockStart = writer.length
    words = linkWords = 0
  }

  /** Keeps what was written since the last kept block: short blocks before this one, and this one. */
  function keep(): void {
    wordCount += pendingWords
    const { length } = writer
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
}

const keptBit = 0x80

const aTag = tagId('a')
const articleTag = tagId('article')
const mainTag = tagId('main')
const headerTag = tagId('header')
const footerTag = tagId('footer')
const templateTag = tagId('template')
