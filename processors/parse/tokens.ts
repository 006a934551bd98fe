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
  /** Tokens as UTF-16, one space after each; unspaced runs whole. The first `unitCount` are valid. */
  readonly units: Uint16Array
  unitCount: number
}

/** Reads tokens from texts of at most `maxUnits` UTF-16 units (after NFKC; what is over is left out). */
export function createTokenReader(maxUnits: number): (text: string) => TokenSequence {
  const source = Buffer.allocUnsafeSlow(2 * maxUnits)
  const input = new Uint16Array(source.buffer, source.byteOffset, maxUnits)
  const high = new Int32Array(maxUnits)
  const low = new Int32Array(maxUnits)
  const units = new Uint16Array(2 * maxUnits + 2)
  const sequence: TokenSequence = { high, low, count: 0, units, unitCount: 0 }

  return (text) => {
    // ASCII is NFKC already.
    const composed = Buffer.byteLength(text) === text.length ? text : text.normalize('NFKC')
    // Node's name for UTF-16LE, which is what typed arrays hold on every machine that Node runs on.
    readTokens(input, source.write(composed.toLowerCase(), 0, 'utf16le') >>> 1, sequence)
    return sequence
  }
}

/** The loop over every character; arguments are locals, which is what makes it fast. */
function readTokens(input: Uint16Array, n: number, sequence: TokenSequence): void {
  const { high, low, units } = sequence
  const kinds = unitKinds
  let t = 0
  let w = 0
  let i = 0
  while (i < n) {
    let unit = input[i]!
    let kind = kinds[unit]!
    if (kind === separator) {
      i++
      if (unit >= 0xd800 && unit < 0xdc00 && i < n && isSurrogate(input[i]!)) i++
      continue
    }
    if (kind === unspaced) {
      const start = i
      let last = 0
      do {
        units[w++] = unit
        if (i > start) {
          const b = Math.imul(unit, primeB)
          high[t] = finishHigh(seedA ^ last, b)
          low[t++] = finishLow(seedA ^ last, b)
        }
        last = unit
        i++
      } while (i < n && kinds[(unit = input[i]!)] === unspaced)
      if (i === start + 1) {
        high[t] = finishHigh(seedA ^ last, seedB)
        low[t++] = finishLow(seedA ^ last, seedB)
      }
      units[w++] = 32
      continue
    }
    if (kind === digit) {
      const end = timeOrDateEnd(input, i, n)
      if (end > 0) {
        high[t] = timeHigh
        low[t++] = timeLow
        units[w++] = 116
        units[w++] = 58
        units[w++] = 32
        i = end
        continue
      }
    }
    const start = i
    let letters = 0
    let a = seedA
    let b = seedB
    do {
      letters |= kind
      units[w++] = unit
      a = Math.imul(a ^ unit, primeA)
      b = (((b << 11) | (b >>> 21)) + a) | 0
      if (++i >= n) break
      unit = input[i]!
      kind = kinds[unit]!
    } while (kind > unspaced)
    if (letters === digit && i - start >= longNumberDigits) {
      w -= i - start
      units[w++] = 48
      a = b = seedA
    }
    units[w++] = 32
    high[t] = finishHigh(a, b)
    low[t++] = finishLow(a, b)
  }
  sequence.count = t
  sequence.unitCount = w
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

/** Kinds of a UTF-16 unit; up to `unspaced` they end a word. */
const separator = 0
const unspaced = 1
const digit = 2
const letter = 3
const unspacedScripts =
  /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}\u3005\u30fc]+/gu

const unitKinds = createUnitKinds()

function createUnitKinds(): Uint8Array {
  const kinds = new Uint8Array(0x10000)
  const all = Uint16Array.from({ length: 0x10000 }, (_, unit) => (isSurrogate(unit) ? 32 : unit))
  const text = Buffer.from(all.buffer).toString('utf16le')
  for (const run of text.matchAll(/[\p{L}\p{N}\p{M}]+/gu)) kinds.fill(letter, run.index, run.index + run[0].length)
  for (const run of text.matchAll(unspacedScripts)) kinds.fill(unspaced, run.index, run.index + run[0].length)
  kinds.fill(digit, 48, 58)
  // Astral characters are letters, but for pictographs (U+1F000-1FBFF), whose high surrogates separate.
  kinds.fill(letter, 0xd800, 0xe000)
  kinds.fill(separator, 0xd83c, 0xd83f)
  return kinds
}

function isSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xe000
}
