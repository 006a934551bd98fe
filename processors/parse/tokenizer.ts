import { attributeNames, bitsOf, createNameTable, lookUp, tagBits, tagId, tagNames } from './tags.ts'

export interface ScannerOptions {
  /** Report every tag and attribute, not only those that `tags.ts` knows; id 0 is "not known". For tests and tools. */
  readonly everything?: boolean
  /** XML rules where they differ for a page that is well-formed: `<script/>` is closed, CDATA is text. */
  readonly xml?: boolean
}

/**
 * What the tape holds, as 32-bit words; positions are byte offsets into the page:
 * - text: `kind, start, end`; may be one of several in a row;
 * - raw: `kind | tag << 8, start, end`: the content of a title, textarea, script and so on, empty too;
 * - start: `kind | tag << 8 | selfClosing << 16, nameStart, nameEnd, n`, then n attributes of
 *   `attribute, nameStart, nameEnd, valueStart, valueEnd`, duplicates included (the first of a name counts);
 * - end: `kind | tag << 8, nameStart, nameEnd`.
 */
export const tokenKinds = { text: 0, raw: 1, start: 2, end: 3, cdata: 4 } as const
export const attributeWords = 5

/** Attributes of one tag past this number are skipped. */
const maxAttributes = 512
const tapeWords = 16 * 1024

/**
 * The HTML tokenizer (HTML standard, 13.2.5) over UTF-8 bytes, or any bytes that extend ASCII. It writes what matters
 * to a tape of 32-bit words and leaves values as byte ranges: no object and no string is made a tag. Which elements
 * hold raw text is decided here, by name, as the standard's tree builder does for all but foreign elements. Time is
 * linear in the page's length, whatever it holds.
 *
 * `fill` is the inner scan: bytes in, words out, state in a few integers, so that another kernel can take its place.
 */
export interface Scanner {
  readonly tape: Int32Array
  /** Starts a page. `raw`: the name of the raw text element that the bytes start in. */
  begin(bytes: Uint8Array, raw?: string): void
  /** Number of words written to the tape from its beginning; 0 = the page is done. Tokens are never split. */
  fill(): number
}

export function createScanner(options: ScannerOptions = {}): Scanner {
  const { everything = false, xml = false } = options
  const tape = new Int32Array(tapeWords + 4 + attributeWords * maxAttributes)
  let bytes: Uint8Array = new Uint8Array(0)
  let position = 0
  let rawTag = 0
  let foreignDepth = 0
  // The next "<!--" at or after the position, kept over scripts so that looking for it stays linear.
  let nextComment = -1

  return {
    tape,
    begin(page, raw = '') {
      bytes = page
      position = 0
      rawTag = tagId(raw)
      foreignDepth = 0
      nextComment = -1
    },
    fill,
  }

  function fill(): number {
    const page = bytes
    const n = page.length
    let i = position
    let w = 0
    while (i < n && w < tapeWords) {
      if (rawTag !== 0) {
        const end = rawTag === scriptTag ? scriptEnd(i) : rawTextEnd(i, rawTag)
        tape[w++] = tokenKinds.raw | (rawTag << 8)
        tape[w++] = i
        tape[w++] = end
        rawTag = 0
        i = end
        continue
      }
      if (page[i] !== 60) {
        const end = findTagOpen(page, i, n)
        tape[w++] = tokenKinds.text
        tape[w++] = i
        tape[w++] = end
        i = end
        if (i >= n) break
      }
      // page[i] is "<".
      let at = i + 1
      let byte = at < n ? page[at]! : 0
      let kind: number = tokenKinds.start
      if (byte === 47) {
        kind = tokenKinds.end
        byte = ++at < n ? page[at]! : 0
      }
      const letter = byte | 32
      if (letter < 97 || letter > 122) {
        if (byte === 33 && kind === tokenKinds.start) {
          if ((foreignDepth > 0 || xml) && startsWith(page, at + 1, cdataOpen)) {
            const start = at + 1 + cdataOpen.length
            const end = indexOrEnd(page, ']]>', start)
            tape[w++] = tokenKinds.cdata
            tape[w++] = start
            tape[w++] = end
            i = Math.min(n, end + 3)
          } else if (page[at + 1] === 45 && page[at + 2] === 45) i = commentEnd(page, at + 3)
          else i = after(page, 62, at)
        } else if ((byte === 63 && kind === tokenKinds.start) || (kind === tokenKinds.end && at < n)) {
          i = after(page, 62, at)
        } else {
          // A "<" (or "</" at the very end) that starts nothing is text.
          const end = findTagOpen(page, at, n)
          tape[w++] = tokenKinds.text
          tape[w++] = i
          tape[w++] = end
          i = end
        }
        continue
      }

      const nameStart = at
      let hash = 0
      for (; at < n; at++) {
        byte = page[at]!
        if (byte === 62 || byte === 47 || (byte <= 32 && isSpace(byte))) break
        hash = (Math.imul(hash, 31) + (byte >= 65 && byte <= 90 ? byte | 32 : byte)) | 0
      }
      const nameEnd = at
      const tag = lookUp(tagTable, hash, page, nameStart, nameEnd)
      const bits = bitsOf[tag]!
      const wanted = kind === tokenKinds.start && (everything || (bits & tagBits.attributes) !== 0)
      const head = w
      w += kind === tokenKinds.start ? 4 : 3
      const firstAttribute = w
      let selfClosing = 0
      let complete = false

      while (at < n) {
        byte = page[at]!
        if (byte === 62) {
          at++
          complete = true
          break
        }
        if (byte === 47) {
          if (page[++at] === 62) selfClosing = 1
          continue
        }
        if (byte <= 32 && isSpace(byte)) {
          at++
          continue
        }
        // Attribute name; a "=" in first place belongs to it.
        const attributeStart = at
        hash = byte >= 65 && byte <= 90 ? byte | 32 : byte
        for (at++; at < n; at++) {
          byte = page[at]!
          if (byte === 61 || byte === 62 || byte === 47 || (byte <= 32 && isSpace(byte))) break
          hash = (Math.imul(hash, 31) + (byte >= 65 && byte <= 90 ? byte | 32 : byte)) | 0
        }
        const attributeEnd = at
        while (at < n && isSpace(page[at]!)) at++
        let valueStart = attributeEnd
        let valueEnd = attributeEnd
        if (at < n && page[at] === 61) {
          at++
          while (at < n && isSpace(page[at]!)) at++
          if (at >= n) break
          byte = page[at]!
          if (byte === 34 || byte === 39) {
            valueStart = at + 1
            valueEnd = findByte(page, byte, valueStart, n)
            at = valueEnd + 1
            if (valueEnd >= n) break
          } else {
            valueStart = at
            for (; at < n; at++) {
              byte = page[at]!
              if (byte === 62 || (byte <= 32 && isSpace(byte))) break
            }
            valueEnd = at
          }
        }
        if (wanted && w - firstAttribute < attributeWords * maxAttributes) {
          const attribute = lookUp(attributeTable, hash, page, attributeStart, attributeEnd)
          if (attribute !== 0 || everything) {
            tape[w++] = attribute
            tape[w++] = attributeStart
            tape[w++] = attributeEnd
            tape[w++] = valueStart
            tape[w++] = valueEnd
          }
        }
      }
      if (!complete) {
        // The page ends inside the tag, which then is none.
        w = head
        i = n
        break
      }
      i = at

      if (tag === svgTag || tag === mathTag) {
        if (kind === tokenKinds.end) foreignDepth = Math.max(0, foreignDepth - 1)
        else if (selfClosing === 0) foreignDepth++
      } else if (foreignDepth > 0 && kind === tokenKinds.start && (bits & tagBits.breakout) !== 0) foreignDepth = 0
      if (kind === tokenKinds.start && (bits & tagBits.raw) !== 0) {
        if (selfClosing === 0 || (foreignDepth === 0 && !xml)) rawTag = tag
      }
      if (tag === 0 && !everything) {
        w = head
        continue
      }
      tape[head] = kind | (tag << 8) | (selfClosing << 16)
      tape[head + 1] = nameStart
      tape[head + 2] = nameEnd
      if (kind === tokenKinds.start) tape[head + 3] = (w - firstAttribute) / attributeWords
    }
    position = i
    return w
  }

  /** Where the end tag of a raw text element starts, or the page's end. */
  function rawTextEnd(from: number, tag: number): number {
    const n = bytes.length
    if (tag === plaintextTag) return n
    for (let i = from; ; i += 2) {
      i = indexOrEnd(bytes, '</', i)
      if (i >= n || isTagName(i + 2, tag)) return i
    }
  }

  /** The same for a script, in which `<!-- <script>` hides the next end tag until `-->` or `</script>` (13.2.5.15-31). */
  function scriptEnd(from: number): number {
    const n = bytes.length
    let i = from
    let close = -1
    for (;;) {
      if (close < i) close = rawTextEnd(i, scriptTag)
      if (nextComment < i) nextComment = indexOrEnd(bytes, '<!--', i)
      if (close < nextComment) return close
      if (nextComment >= n) return n
      // Escaped. The dashes that open it may be those that close it.
      i = nextComment + 4
      const dashes = indexOrEnd(bytes, '-->', nextComment + 2)
      let double = false
      for (;;) {
        i = findByte(bytes, 60, i, n)
        if (i > dashes) {
          i = dashes + 3
          break
        }
        if (i >= n) return n
        if (bytes[i + 1] === 47) {
          if (isTagName(i + 2, scriptTag)) {
            if (!double) return i
            double = false
          }
        } else if (isTagName(i + 1, scriptTag)) double = true
        i++
      }
      if (i >= n) return n
    }
  }

  function isTagName(start: number, tag: number): boolean {
    const length = tagTable.lengths[tag]!
    const next = bytes[start + length]
    if (next === undefined || (next !== 62 && next !== 47 && !isSpace(next))) return false
    const name = tagNames[tag]!
    for (let k = 0; k < length; k++) if ((bytes[start + k]! | 32) !== name.charCodeAt(k)) return false
    return true
  }
}

const tagTable = createNameTable(tagNames)
const attributeTable = createNameTable(attributeNames)
const scriptTag = tagId('script')
const plaintextTag = tagId('plaintext')
const svgTag = tagId('svg')
const mathTag = tagId('math')
const cdataOpen = '[CDATA['

/** Below this distance a loop is faster than the call of a native search. */
const nearBytes = 48

function isSpace(byte: number): boolean {
  return byte === 32 || byte === 10 || byte === 9 || byte === 13 || byte === 12
}

function findByte(page: Uint8Array, byte: number, from: number, n: number): number {
  const near = Math.min(n, from + nearBytes)
  let i = from
  while (i < near && page[i] !== byte) i++
  if (i < near || i >= n) return i
  i = page.indexOf(byte, i)
  return i < 0 ? n : i
}

function findTagOpen(page: Uint8Array, from: number, n: number): number {
  return findByte(page, 60, from, n)
}

/** Past the next `byte`, or the page's end. */
function after(page: Uint8Array, byte: number, from: number): number {
  return Math.min(page.length, findByte(page, byte, from, page.length) + 1)
}

/** From just after the opening dashes: past `-->` or `--!>`; `>` and `->` close it at once. */
function commentEnd(page: Uint8Array, start: number): number {
  const n = page.length
  if (page[start] === 62) return start + 1
  if (page[start] === 45 && page[start + 1] === 62) return start + 2
  for (let i = start; ; i++) {
    i = findByte(page, 62, i, n)
    if (i >= n) return n
    if (i - start >= 2 && page[i - 1] === 45 && page[i - 2] === 45) return i + 1
    if (i - start >= 3 && page[i - 1] === 33 && page[i - 2] === 45 && page[i - 3] === 45) return i + 1
  }
}

function indexOrEnd(page: Uint8Array, needle: string, from: number): number {
  const at = Buffer.prototype.indexOf.call(page, needle, from, 'latin1')
  return at < 0 ? page.length : at
}

function startsWith(page: Uint8Array, from: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) if (page[from + i] !== text.charCodeAt(i)) return false
  return true
}
