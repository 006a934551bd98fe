import { compound, foldAny, foldAscii, foldNormal, separator, unspaced } from './characters.ts'
import { timeOrDateEnd } from './dates.ts'
import { codePointAt, sizeOf, writeUnit } from './utf8.ts'

/**
 * The token sequence that fingerprints are made of. A token is a run of letters, digits and marks, in lower case and
 * NFKC. Runs of five digits or more become one symbol, as do times and dates, since counters and clocks change on every
 * visit. Scripts written without spaces give the pairs of neighbouring characters.
 */
export interface TokenSequence {
  /** 64-bit hashes of the tokens, in two halves; the first `count` are valid, until the next call. */
  readonly high: Int32Array
  readonly low: Int32Array
  count: number
  /** Tokens as UTF-8, one space after each; unspaced runs whole. The first `byteCount` are valid. */
  readonly bytes: Buffer
  byteCount: number
}

/** Reads tokens from texts of at most `maxUnits` UTF-16 units (after NFKC; what is over is left out). */
export function createTokenReader(maxUnits: number): (text: string) => TokenSequence {
  // A zero after the text ends every loop.
  const input = Buffer.allocUnsafeSlow(3 * maxUnits + 1)
  const reader: Reader = {
    input,
    end: 0,
    at: 0,
    fold: foldAny,
    high: new Int32Array(maxUnits),
    low: new Int32Array(maxUnits),
    count: 0,
    bytes: Buffer.allocUnsafeSlow(4 * maxUnits),
    byteCount: 0,
  }

  return (text) => {
    if (!read(text, foldAny)) read(text.normalize('NFKC').toLowerCase(), foldNormal)
    return reader
  }

  function read(text: string, fold: Uint16Array): boolean {
    const n = input.write(text.length > maxUnits ? text.slice(0, maxUnits) : text)
    input[n] = 0
    reader.end = n
    reader.fold = fold
    reader.at = reader.count = reader.byteCount = 0
    return readTokens(reader)
  }
}

interface Reader extends TokenSequence {
  /** Well-formed UTF-8, a zero at `end`. */
  readonly input: Buffer
  end: number
  at: number
  fold: Uint16Array
}

/**
 * The loop over every byte; words of ASCII, which most are, stay in it. Small, so that the engine compiles it whole.
 * False: the text must be normalized first.
 */
function readTokens(reader: Reader): boolean {
  const { input, end, high, low, bytes } = reader
  let t = 0
  let w = 0
  let i = 0
  while (i < end) {
    let c = foldAscii[input[i]!]!
    if (c === separator) {
      i++
      continue
    }
    if (c > nine) {
      const start = i
      let a = seedA
      let b = seedB
      do {
        bytes[w++] = c
        a = Math.imul(a ^ c, primeA)
        b = (((b << 11) | (b >>> 21)) + a) | 0
        c = foldAscii[input[++i]!]!
      } while (c > 0)
      if (c === separator) {
        bytes[w++] = 32
        high[t] = finishHigh(a, b)
        low[t++] = finishLow(a, b)
        i++
        continue
      }
      // It goes on beyond ASCII.
      w -= i - start
      i = start
    }
    reader.at = i
    reader.count = t
    reader.byteCount = w
    if (!readOther(reader)) return false
    i = reader.at
    t = reader.count
    w = reader.byteCount
  }
  reader.count = t
  reader.byteCount = w
  return true
}

/** Reads a token of any kind, or a separator, and the next ones for as long as they start beyond ASCII. */
function readOther(reader: Reader): boolean {
  const { input, fold, high, low, bytes } = reader
  let t = reader.count
  let w = reader.byteCount
  let i = reader.at
  let c = foldAscii[input[i]!]!
  let startsWithDigit = c > 0 && c <= nine
  if (startsWithDigit) {
    const end = timeOrDateEnd(input, i, reader.end)
    if (end > 0) {
      reader.at = end
      bytes[w] = 116
      bytes[w + 1] = 58
      push(reader, w + 2, timeHigh, timeLow)
      return true
    }
  }
  do {
    const start = w
    let a = seedA
    let b = seedB
    for (;;) {
      while (c > 0) {
        bytes[w++] = c
        a = Math.imul(a ^ c, primeA)
        b = (((b << 11) | (b >>> 21)) + a) | 0
        c = foldAscii[input[++i]!]!
      }
      if (c === separator) break
      const lead = input[i]!
      if (lead >= 0xf0) {
        const code = codePointAt(input, i)
        if (fold === foldAny && !isPlainPictograph(code)) return false
        if (isPictograph(code)) break
        a = Math.imul(a ^ (0xd7c0 + (code >>> 10)), primeA)
        b = (((b << 11) | (b >>> 21)) + a) | 0
        a = Math.imul(a ^ (0xdc00 | (code & 0x3ff)), primeA)
        b = (((b << 11) | (b >>> 21)) + a) | 0
        for (let left = 4; left > 0; left--) bytes[w++] = input[i++]!
      } else {
        const second = input[i + 1]! & 0x3f
        const unit =
          lead < 0xe0 ? ((lead & 0x1f) << 6) | second : ((lead & 0x0f) << 12) | (second << 6) | (input[i + 2]! & 0x3f)
        const folded = fold[unit]!
        if (folded <= compound) {
          if (folded === compound) return false
          break
        }
        a = Math.imul(a ^ folded, primeA)
        b = (((b << 11) | (b >>> 21)) + a) | 0
        if (folded >= 0x80 && folded < 0x800) {
          bytes[w++] = 0xc0 | (folded >>> 6)
          bytes[w++] = 0x80 | (folded & 0x3f)
        } else w = writeUnit(bytes, w, folded)
        i += lead < 0xe0 ? 2 : 3
      }
      c = foldAscii[input[i]!]!
    }
    if (w > start) {
      if (startsWithDigit && w - start >= longNumberDigits && areDigits(bytes, start, w)) {
        w = start
        bytes[w++] = 48
        a = b = seedA
      }
      startsWithDigit = false
      bytes[w++] = 32
      high[t] = finishHigh(a, b)
      low[t++] = finishLow(a, b)
    } else {
      reader.count = t
      reader.byteCount = w
      reader.at = i
      readUnspaced(reader)
      t = reader.count
      w = reader.byteCount
      i = reader.at
    }
    c = separator
    while (i < reader.end && c === separator) {
      c = foldAscii[input[i]!]!
      if (c === separator) i++
    }
  } while (c < 0)
  reader.count = t
  reader.byteCount = w
  reader.at = i
  return true
}

/** Pairs of neighbours of a script without spaces; nothing if there is a separator. */
function readUnspaced(reader: Reader): void {
  const { input, fold, bytes } = reader
  let w = reader.byteCount
  let last = 0
  let length = 0
  for (;;) {
    const code = codePointAt(input, reader.at)
    if (code > 0xffff || fold[code] !== unspaced) break
    if (length++ > 0) {
      const b = Math.imul(code, primeB)
      reader.high[reader.count] = finishHigh(seedA ^ last, b)
      reader.low[reader.count++] = finishLow(seedA ^ last, b)
    }
    last = code
    for (let left = sizeOf(input[reader.at]!); left > 0; left--) bytes[w++] = input[reader.at++]!
  }
  if (length === 0) reader.at += sizeOf(input[reader.at]!)
  else if (length > 1) {
    bytes[w++] = 32
    reader.byteCount = w
  } else push(reader, w, finishHigh(seedA ^ last, seedB), finishLow(seedA ^ last, seedB))
}

/** Ends a token whose bytes are written up to `end`. */
function push(reader: Reader, end: number, high: number, low: number): void {
  reader.bytes[end] = 32
  reader.byteCount = end + 1
  reader.high[reader.count] = high
  reader.low[reader.count++] = low
}

function areDigits(bytes: Buffer, start: number, end: number): boolean {
  let i = start
  while (i < end && bytes[i]! >= 48 && bytes[i]! <= 57) i++
  return i === end
}

/** Astral characters are letters, but for these. */
function isPictograph(code: number): boolean {
  return code >= 0x1f000 && code < 0x1fc00
}

/** Those among them that are in NFKC, which enclosed letters and digits are not. */
function isPlainPictograph(code: number): boolean {
  return code >= 0x1f300 && code < 0x1fbf0
}

/** Every input bit reaches every output bit of either half, which a SimHash needs. */
function finishHigh(a: number, b: number): number {
  let x = a ^ (b >>> 15)
  x = Math.imul(x ^ (x >>> 16), mixA)
  x = Math.imul(x ^ (x >>> 15) ^ b, mixB)
  return x ^ (x >>> 16)
}

function finishLow(a: number, b: number): number {
  let x = b ^ (a >>> 13)
  x = Math.imul(x ^ (x >>> 15), mixB)
  x = Math.imul(x ^ (x >>> 16) ^ a, mixA)
  return x ^ (x >>> 15)
}

const nine = 57
const longNumberDigits = 5

const seedA = 0x2f0b4c47
const seedB = 0x7d1e9b35
const primeA = 0x01000193
const primeB = 0x5f356495
const mixA = 0x7feb352d
const mixB = 0x846ca68b | 0
const timeHigh = 0x6a09e667
const timeLow = 0x3c6ef372
