import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { timeOrDateEnd } from '../../../processors/parse/dates.ts'
import {
  createFingerprinter,
  type Fingerprint,
  hammingDistance,
  minFingerprintTokens,
} from '../../../processors/parse/fingerprint.ts'
import { createPageParser } from '../../../processors/parse/page.ts'
import { createTokenReader } from '../../../processors/parse/tokens.ts'
import { hash128 } from '../../../schemas/hash.ts'
import { lacks, realPages } from './suite.ts'

const fingerprint = createFingerprinter({ maxTextUnits: 256 * 1024 })
const seed = Number(process.env.SEED ?? Date.now() % 2 ** 31)
console.log(`seed ${seed}`)

/** Small and seeded, so that a failure can be run again (mulberry32). */
function randomness(from: number): () => number {
  let state = from
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Words as a language has them: few are frequent (Zipf), over a vocabulary of its own. */
function randomText(random: () => number, count: number, vocabulary: string): string {
  return Array.from({ length: count }, () => `${vocabulary}${Math.floor(2_000 * random() ** 3)}w`).join(' ')
}

function f1(a: Fingerprint, b: Fingerprint): number {
  return hammingDistance(a.simhash, b.simhash)
}

function sequence(text: string): string {
  const { bytes, byteCount } = createTokenReader(10_000)(text)
  return bytes.toString('utf8', 0, byteCount).trim()
}

test('tokens are runs of letters, digits and marks, folded', () => {
  assert.equal(sequence('Hello, WORLD—it’s 3½ “naïve” Ünïts'), 'hello world it s 31 2 naïve ünïts')
  assert.equal(sequence('ﬁne Ｆｕｌｌ №'), 'fine full no')
  assert.equal(sequence('हिन्दी में'), 'हिन्दी में')
  assert.equal(sequence('日本語 text 語'), '日本語 text 語')
  assert.equal(createTokenReader(100)('日本語 text 語').count, 4)
  assert.equal(sequence('a😀b'), 'a b')
})

/** What `sequence` gives, by regular expressions. */
function foldedTokens(text: string): string {
  const folded = text.normalize('NFKC').toLowerCase()
  // Beyond the basic plane every letter is taken to be of a script with spaces.
  const unspaced =
    '(?![\\u{10000}-\\u{10ffff}])[\\p{sc=Han}\\p{sc=Hiragana}\\p{sc=Katakana}\\p{sc=Thai}\\p{sc=Lao}\\p{sc=Khmer}\\p{sc=Myanmar}々ー]'
  const tokens = folded.match(new RegExp(`(?:${unspaced})+|(?:(?!${unspaced})[\\p{L}\\p{N}\\p{M}])+`, 'gu')) ?? []
  return tokens.map((token) => (/^[0-9]{5,}$/.test(token) ? '0' : token)).join(' ')
}

test('every character of the basic plane is folded by NFKC and lower case', () => {
  const read = createTokenReader(100)
  for (let unit = 1; unit < 0x10000; unit++) {
    if (unit >= 0xd800 && unit < 0xe000) continue
    const text = `x${String.fromCharCode(unit)}y`
    const { bytes, byteCount } = read(text)
    assert.equal(bytes.toString('utf8', 0, byteCount).trim(), foldedTokens(text), `U+${unit.toString(16)}`)
  }
})

test('characters are folded together with their neighbours', () => {
  const pieces = [
    'e',
    '\u0301',
    '\u0327',
    'Σ',
    'α',
    'İ',
    'ﬁ',
    '½',
    '…',
    '’',
    'É',
    'Ж',
    'ß',
    '日',
    'ｶ',
    'ﾞ',
    'か',
    '\u3099',
    'ไ',
    '가',
    '\u1100',
    '\u1161',
    '\u11a8',
    'Ⅻ',
    'Ⱥ',
    '😀',
    '🄰',
    '🯱',
    ' ',
    '-',
    '9',
  ]
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...pieces), { maxLength: 20 }), (chosen) => {
      assert.equal(sequence(chosen.join('')), foldedTokens(chosen.join('')))
    }),
    { numRuns: 2_000, seed },
  )
})

test('long numbers, times and dates are one symbol each', () => {
  const same = (a: string, b: string): void => assert.deepEqual(fingerprint(`x ${a} y`), fingerprint(`x ${b} y`))
  same('12345', '9876543210')
  same('2024-05-01T12:30:00Z', '1999-12-31 23:59')
  same('9:05', '23:59:59.123+02:00')
  same('1.5.2024', '05/01/24')
  const differs = (a: string, b: string): void =>
    assert.notDeepEqual(fingerprint(`x ${a} y`).contentHash, fingerprint(`x ${b} y`).contentHash)
  differs('1234', '1235')
  differs('1.2.3.4', '1.2.3.5')
  differs('3.14', '3.15')
  differs('12:3', '12:4')
  differs('12345', '9:05')
  const end = (text: string): number =>
    timeOrDateEnd(
      Uint8Array.from(text, (char) => char.charCodeAt(0)),
      0,
      text.length,
    )
  assert.deepEqual(['12:30pm', '12:30 pm', '2024-05-01x', '10:00-11:00', '1-2'].map(end), [0, 5, 0, 11, 0])
})

test('the content hash is that of the normalized tokens', () => {
  assert.deepEqual(fingerprint('One,  TWO 1234567!').contentHash, hash128('one two 0 '))
  assert.deepEqual(fingerprint('').contentHash, hash128(''))
  assert.equal(fingerprint(' … ').tokenCount, 0)
})

test('same text, same fingerprints, whatever its case, spaces and punctuation', () => {
  fc.assert(
    fc.property(fc.array(fc.stringMatching(/^[a-zé日0-9]{1,8}$/), { maxLength: 60 }), (words) => {
      const once = fingerprint(words.join(' '))
      assert.deepEqual(fingerprint(words.map((word) => word.toUpperCase()).join(',\n  ')), once)
      fingerprint('something else in between')
      assert.deepEqual(fingerprint(words.join(' ')), once)
    }),
    { numRuns: 300, seed },
  )
})

test('SimHash is the majority of its features, bit by bit', () => {
  const random = randomness(seed)
  for (const count of [0, 1, 2, 7, 8, 9, 63, 64, 200, 1_001]) {
    const words = Array.from({ length: count }, () => `${Math.floor(random() * 1e4)}q`)
    const { high, low } = createTokenReader(20_000)(words.join(' '))
    let expected = ''
    for (const half of [high, low]) {
      for (let bit = 31; bit >= 0; bit--) {
        let set = 0
        for (let i = 0; i < count; i++) set += (half[i]! >>> bit) & 1
        expected += 2 * set > count ? '1' : '0'
      }
    }
    assert.equal(
      BigInt(`0b${expected}`).toString(16).padStart(16, '0'),
      fingerprint(words.join(' ')).simhash.toString('hex'),
    )
  }
})

test('hamming distance is a metric of 64 bits', () => {
  assert.equal(hammingDistance(Buffer.alloc(8), Buffer.alloc(8, 0xff)), 64)
  assert.equal(hammingDistance(Buffer.from('0000000000000003', 'hex'), Buffer.from('8000000000000001', 'hex')), 2)
})

test('one word in 1,000 moves a fingerprint little; unrelated texts are 32 bits apart', (t) => {
  const random = randomness(seed)
  let near = 0
  const pairs = 200
  const unrelated: number[] = []
  let last = fingerprint(randomText(random, 1_000, 'z'))
  for (let i = 0; i < pairs; i++) {
    const words = randomText(random, 1_000, `v${i}`).split(' ')
    const before = fingerprint(words.join(' '))
    words[Math.floor(random() * words.length)] = 'changed'
    const after = fingerprint(words.join(' '))
    assert.notDeepEqual(after.contentHash, before.contentHash)
    near = Math.max(near, f1(before, after))
    unrelated.push(f1(before, last))
    last = before
  }
  const mean = unrelated.reduce((sum, each) => sum + each, 0) / pairs
  const deviation = Math.sqrt(unrelated.reduce((sum, each) => sum + (each - mean) ** 2, 0) / pairs)
  t.diagnostic(`one word: at most ${near} bits; unrelated: ${mean.toFixed(1)} ± ${deviation.toFixed(1)}`)
  assert.ok(near <= 6)
  assert.ok(mean > 30.5 && mean < 33.5 && deviation < 5.5)
})

test('D4: measured recall and precision on edited real texts', { skip: lacks('readability') }, (t) => {
  const parse = createPageParser()
  const random = randomness(seed)
  const texts = realPages()
    .map(
      ({ html }) =>
        parse({
          url: 'http://h.example/',
          contentType: 'text/html; charset=utf-8',
          headers: [],
          body: html,
          agentToken: 'weir',
        })!,
    )
    .filter((page) => page.tokenCount >= 200)
  const vocabulary = texts.flatMap((page) => page.text.split(/\s+/))
  assert.ok(texts.length > 40)
  const recall: { [edits: string]: string } = {}
  for (const [share, floor3, floor6, floor8] of [
    [0.01, 0.82, 0.96, 0.98],
    [0.03, 0.6, 0.91, 0.95],
    [0.05, 0.4, 0.8, 0.9],
  ] as const) {
    const distances: number[] = []
    for (const page of texts) {
      for (let round = 0; round < 4; round++) {
        const edited = page.text
          .split(' ')
          .map((word) => (random() < share ? vocabulary[Math.floor(random() * vocabulary.length)] : word))
          .join(' ')
        distances.push(f1(page, fingerprint(edited)))
      }
    }
    const within = (bits: number): number => distances.filter((distance) => distance <= bits).length / distances.length
    recall[share] = [3, 6, 8].map((bits) => within(bits).toFixed(2)).join('/')
    assert.ok(within(3) >= floor3 && within(6) >= floor6 && within(8) >= floor8, `${share} edited: ${recall[share]}`)
  }
  const unrelated: number[] = []
  let confused = 0
  for (const [i, a] of texts.entries()) {
    for (const b of texts.slice(0, i)) {
      if (a.title === b.title) continue
      unrelated.push(f1(a, b))
      if (f1(a, b) <= 6 && hammingDistance(a.simhash2, b.simhash2) <= 12) confused++
    }
  }
  const mean = unrelated.reduce((sum, each) => sum + each, 0) / unrelated.length
  t.diagnostic(`recall within 3/6/8 bits at 1, 3, 5 % edits: ${Object.values(recall).join(', ')}`)
  t.diagnostic(`${unrelated.length} unrelated pairs: mean ${mean.toFixed(1)}, ${confused} confused`)
  assert.ok(mean > 28)
  assert.equal(confused, 0)
})

test('D4: a short text moves too far for its SimHash to be used', (t) => {
  const random = randomness(seed)
  let far = 0
  for (let i = 0; i < 100; i++) {
    const words = randomText(random, 30, `v${i}`).split(' ')
    const before = fingerprint(words.join(' '))
    assert.ok(before.tokenCount < minFingerprintTokens)
    words[3] = 'changed'
    if (f1(before, fingerprint(words.join(' '))) > 3) far++
  }
  t.diagnostic(`${far} of 100 moved over 3 bits`)
  assert.ok(far > 35)
})
