import { hash128 } from '../../schemas/hash.ts'
import { frequentTokens } from './frequent-tokens.ts'
import { type SimHash, simHash } from './simhash.ts'
import { createTokenReader, type TokenSequence } from './tokens.ts'

export interface Fingerprint {
  /** 16 bytes: hash128 of the normalized token sequence, as UTF-8. Equal = same content. */
  readonly contentHash: Buffer
  /** F1, 8 bytes big-endian: SimHash of words without the frequent ones. Finds candidates. */
  readonly simhash: Buffer
  /** F2, 8 bytes big-endian: SimHash of word 3-grams and 5-grams. Confirms them. */
  readonly simhash2: Buffer
  readonly tokenCount: number
}

/** Below this many tokens a SimHash says nothing: one word moves it too far. Compare `contentHash` only. */
export const minFingerprintTokens = 50

/**
 * Makes fingerprints of texts. Weights are frequencies; word order counts in F2 and the content hash alone. The two
 * kinds of features and the acceptance rule that joins them follow Henzinger (SIGIR 2006): one fingerprint for recall,
 * a second for precision.
 */
export function createFingerprinter(options: { readonly maxTextUnits: number }): (text: string) => Fingerprint {
  const { maxTextUnits } = options
  const read = createTokenReader(maxTextUnits)
  // Seven words more, as `simHash` wants them.
  const words = { high: new Int32Array(maxTextUnits + 7), low: new Int32Array(maxTextUnits + 7), count: 0 }
  const grams = { high: new Int32Array(2 * maxTextUnits + 7), low: new Int32Array(2 * maxTextUnits + 7), count: 0 }

  return (text) => {
    const tokens = read(text)
    keepRare(tokens, words)
    makeGrams(tokens, grams)
    return {
      contentHash: hash128(tokens.bytes.subarray(0, tokens.byteCount)),
      simhash: toBytes(simHash(words.high, words.low, words.count)),
      simhash2: toBytes(simHash(grams.high, grams.low, grams.count)),
      tokenCount: tokens.count,
    }
  }
}

interface Features {
  readonly high: Int32Array
  readonly low: Int32Array
  count: number
}

function keepRare(tokens: TokenSequence, words: Features): void {
  const { high: allHigh, low: allLow, count } = tokens
  const { high, low } = words
  let kept = 0
  for (let i = 0; i < count; i++) {
    const h = allHigh[i]!
    const l = allLow[i]!
    high[kept] = h
    low[kept] = l
    // Of the rare ones one in 60 has its bit set, so that the branch is foreseen.
    const maybe = (frequentBits[(h >>> 5) & (bitWords - 1)]! >>> (h & 31)) & 1
    if (maybe === 0 || !isFrequent(h, l)) kept++
  }
  words.count = kept
}

/** Each word with its two, and its four, predecessors; combined from token hashes, so no string is built. */
function makeGrams(tokens: TokenSequence, grams: Features): void {
  const { high: h, low: l, count } = tokens
  const { high, low } = grams
  let g = 0
  for (let i = 2; i < count; i++) {
    let a = combine(combine(h[i - 2]!, l[i - 1]!), h[i]!)
    let b = combine(combine(l[i - 2]!, h[i - 1]!), l[i]!)
    high[g] = finish(a, b)
    low[g++] = finish(b, ~a)
    if (i < 4) continue
    a = combine(combine(a, h[i - 3]!), l[i - 4]!)
    b = combine(combine(b, l[i - 3]!), h[i - 4]!)
    high[g] = finish(a, b)
    low[g++] = finish(b, ~a)
  }
  grams.count = g
}

/** Bits that differ between two fingerprints of 8 bytes, 0-64. */
export function hammingDistance(a: Uint8Array, b: Uint8Array): number {
  let distance = 0
  for (let i = 0; i < 8; i++) distance += bitCounts[a[i]! ^ b[i]!]!
  return distance
}

const bitCounts = Uint8Array.from({ length: 256 }, (_, byte) => byte.toString(2).replaceAll('0', '').length)

function combine(hash: number, next: number): number {
  return Math.imul(((hash << 9) | (hash >>> 23)) ^ next, 0x85ebca6b | 0)
}

function finish(a: number, b: number): number {
  const mixed = Math.imul(a ^ (a >>> 15) ^ (b << 7), 0x2c1b3c6d)
  return mixed ^ (mixed >>> 14)
}

function toBytes(hash: SimHash): Buffer {
  const bytes = Buffer.allocUnsafe(8)
  bytes.writeInt32BE(hash.high, 0)
  bytes.writeInt32BE(hash.low, 4)
  return bytes
}

/** Open addressing over token hashes; a quarter full. */
const frequentSlots = 4_096
const frequentHigh = new Int32Array(frequentSlots)
const frequentLow = new Int32Array(frequentSlots)
const frequentUsed = new Uint8Array(frequentSlots)
/** One bit for each value of the hash's last 16 bits. */
const bitWords = 2_048
const frequentBits = new Int32Array(bitWords)

const readFrequent = createTokenReader(16 * 1024)(frequentTokens)
for (let i = 0; i < readFrequent.count; i++) {
  const h = readFrequent.high[i]!
  let slot = h & (frequentSlots - 1)
  while (frequentUsed[slot] !== 0) slot = (slot + 1) & (frequentSlots - 1)
  frequentUsed[slot] = 1
  frequentBits[(h >>> 5) & (bitWords - 1)]! |= 1 << (h & 31)
  frequentHigh[slot] = h
  frequentLow[slot] = readFrequent.low[i]!
}

function isFrequent(high: number, low: number): boolean {
  let slot = high & (frequentSlots - 1)
  while (frequentUsed[slot] !== 0) {
    if (frequentHigh[slot] === high && frequentLow[slot] === low) return true
    slot = (slot + 1) & (frequentSlots - 1)
  }
  return false
}
