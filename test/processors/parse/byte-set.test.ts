import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type ByteSet, createByteSet, hashOf } from '../../../processors/parse/byte-set.ts'

const seed = Number(process.env.SEED ?? Date.now() % 2 ** 31)
console.log(`seed ${seed}`)

function add(set: ByteSet, text: string): number {
  set.reserve(3 * text.length)
  set.end += set.bytes.write(text, set.end)
  return set.add()
}

test('entries are numbered by first sight, as those of a Map', () => {
  const set = createByteSet(40)
  fc.assert(
    fc.property(fc.array(fc.string({ maxLength: 3 }), { maxLength: 100 }), (texts) => {
      set.reset()
      const numbers = new Map<string, number>()
      for (const text of texts) {
        const expected = numbers.get(text) ?? (numbers.size < 40 ? numbers.size : -1)
        if (expected >= 0) numbers.set(text, expected)
        assert.equal(add(set, text), expected)
      }
      for (const [text, i] of numbers) {
        assert.equal(set.bytes.toString('utf8', set.starts[i], set.starts[i + 1]), text.toWellFormed())
      }
    }),
    { numRuns: 300, seed },
  )
})

test('entries made to collide are still told apart', () => {
  const collide: string[] = []
  for (let i = 0; collide.length < 100; i++) {
    const text = `/${i}`
    if ((hashOf(Buffer.from(text), 0, text.length) & 255) === 7) collide.push(text)
  }
  const set = createByteSet(128)
  for (let round = 0; round < 2; round++) {
    collide.forEach((text, i) => void assert.equal(add(set, text), i))
    collide.forEach((text, i) => void assert.equal(add(set, text), i))
    set.reset()
  }
})

test('the buffer grows with its entries', () => {
  const set = createByteSet(10)
  const long = 'x'.repeat(100_000)
  assert.equal(add(set, 'a'), 0)
  assert.equal(add(set, long), 1)
  assert.equal(add(set, `${long}y`), 2)
  assert.equal(add(set, long), 1)
  assert.equal(add(set, 'a'), 0)
})
