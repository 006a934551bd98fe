import { compound, foldAny, foldAscii, foldNormal, separator, unspaced } from './characters.ts'
import { timeOrDateEnd } from './dates.ts'

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
  // The loop looks ahead of the end.
  const input = Buffer.allocUnsafeSlow(3 * maxUnits + 4)
  const sequence: TokenSequence = {
    high: new Int32Array(maxUnits),
    low: new Int32Array(maxUnits),
    count: 0,
    bytes: Buffer.allocUnsafeSlow(4 * maxUnits + 4),
    byteCount: 0,
  }

  return (text) => {
    if (!read(text, foldAny)) read(text.normalize('NFKC').toLowerCase(), foldNormal)
    return sequence
  }

  function read(text: string, fold: Uint16Array): boolean {
    const n = input.write(text.length > maxUnits ? text.slice(0, maxUnits) : text)
    input.fill(0, n, n + 4)
    return readTokens(input, n, fold, sequence)
  }
}

/**
 * The loop over every character; arguments are locals, which is what makes it fast. `input` is valid UTF-8 of `n` bytes,
 * zeros after it. False: `fold` does not do for this text.
 */
function readTokens(input: Buffer, n: number, fold: Uint16Array, sequence: TokenSequence): boolean {
  const { high, low, bytes } = sequence
  const ascii = foldAscii
  let t = 0
  let w = 0
  let i = 0
  while (i < n) {
    let c = ascii[input[i]!]!
    if (c === separator) {
      i++
      continue
    }
    const start = w
    const startsWithDigit = c > 0 && c < 58
    if (startsWithDigit) {
      const end = timeOrDateEnd(input, i, n)
      if (end > 0) {
        high[t] = timeHigh
        low[t++] = timeLow
        bytes[w++] = 116
        bytes[w++] = 58
        bytes[w++] = 32
        i = end
        continue
      }
    }
    let a = seedA
    let b = seedB
    for (;;) {
      while (c > 0) {
        bytes[w++] = c
        a = Math.imul(a ^ c, primeA)
        b = (((b << 11) | (b >>> 21)) + a) | 0
        c = ascii[input[++i]!]!
      }
      if (c === separator) break
      const lead = input[i]!
      if (lead >= 0xf0) {
        if (fold === foldAny && !isPictograph(input, i)) return false
        if (isPictograph(input, i)) break
        const code = codePoint(input, i)
        a = Math.imul(a ^ (0xd7c0 + (code >>> 10)), primeA)
        b = (((b << 11) | (b >>> 21)) + a) | 0
        a = Math.imul(a ^ (0xdc00 | (code & 0x3ff)), primeA)
        b = (((b << 11) | (b >>> 21)) + a) | 0
        for (let k = 0; k < 4; k++) bytes[w++] = input[i++]!
      } else {
        const two = lead < 0xe0
        const unit = two
          ? ((lead & 0x1f) << 6) | (input[i + 1]! & 0x3f)
          : ((lead & 0x0f) << 12) | ((input[i + 1]! & 0x3f) << 6) | (input[i + 2]! & 0x3f)
        const folded = fold[unit]!
        if (folded <= compound) {
          if (folded === compound) return false
          break
        }
        a = Math.imul(a ^ folded, primeA)
        b = (((b << 11) | (b >>> 21)) + a) | 0
        if (folded === unit) {
          bytes[w++] = lead
          bytes[w++] = input[i + 1]!
          if (!two) bytes[w++] = input[i + 2]!
        } else w = writeUnit(bytes, w, folded)
        i += two ? 2 : 3
      }
      c = ascii[input[i]!]!
    }
    if (w > start) {
      if (startsWithDigit && w - start >= longNumberDigits && areDigits(bytes, start, w)) {
        w = start
        bytes[w++] = 48
        a = b = seedA
      }
      bytes[w++] = 32
      high[t] = finishHigh(a, b)
      low[t++] = finishLow(a, b)
      if (c === separator) i++
      continue
    }
    // A wide separator, or a run of a script without spaces.
    let unit = unitAt(input, i)
    if (unit < 0 || fold[unit] === separator) {
      i += sizeOf(input[i]!)
      continue
    }
    let last = 0
    let length = 0
    do {
      const size = sizeOf(input[i]!)
      for (let k = 0; k < size; k++) bytes[w++] = input[i++]!
      if (length++ > 0) {
        b = Math.imul(unit, primeB)
        high[t] = finishHigh(seedA ^ last, b)
        low[t++] = finishLow(seedA ^ last, b)
      }
      last = unit
      unit = i < n ? unitAt(input, i) : -1
    } while (unit >= 0 && fold[unit] === unspaced)
    if (length === 1) {
      high[t] = finishHigh(seedA ^ last, seedB)
      low[t++] = finishLow(seedA ^ last, seedB)
    }
    bytes[w++] = 32
  }
  sequence.count = t
  sequence.byteCount = w
  return true
}

function areDigits(bytes: Buffer, start: number, end: number): boolean {
  let i = start
  while (i < end && bytes[i]! >= 48 && bytes[i]! <= 57) i++
  return i === end
}

function sizeOf(lead: number): number {
  return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4
}

/** The UTF-16 unit of the character at `i`; -1 = it takes two. */
function unitAt(input: Buffer, i: number): number {
  const lead = input[i]!
  if (lead < 0x80) return lead
  if (lead < 0xe0) return ((lead & 0x1f) << 6) | (input[i + 1]! & 0x3f)
  if (lead < 0xf0) return ((lead & 0x0f) << 12) | ((input[i + 1]! & 0x3f) << 6) | (input[i + 2]! & 0x3f)
  return -1
}

/** The code point of the four bytes at `i`. */
function codePoint(input: Buffer, i: number): number {
  return (
    ((input[i]! & 0x07) << 18) |
    ((input[i + 1]! & 0x3f) << 12) |
    ((input[i + 2]! & 0x3f) << 6) |
    (input[i + 3]! & 0x3f)
  )
}

/** Astral characters are letters, but for these (U+1F000-1FBFF). */
function isPictograph(input: Buffer, i: number): boolean {
  const code = codePoint(input, i)
  return code >= 0x1f000 && code < 0x1fc00
}

function writeUnit(bytes: Buffer, at: number, unit: number): number {
  let w = at
  if (unit < 0x80) bytes[w++] = unit
  else {
    if (unit < 0x800) bytes[w++] = 0xc0 | (unit >>> 6)
    else {
      bytes[w++] = 0xe0 | (unit >>> 12)
      bytes[w++] = 0x80 | ((unit >>> 6) & 0x3f)
    }
    bytes[w++] = 0x80 | (unit & 0x3f)
  }
  return w
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

const longNumberDigits = 5

const seedA = 0x2f0b4c47
const seedB = 0x7d1e9b35
const primeA = 0x01000193
const primeB = 0x5f356495
const mixA = 0x7feb352d
const mixB = 0x846ca68b | 0
const timeHigh = 0x6a09e667
const timeLow = 0x3c6ef372
