import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createDedupe, seenStore } from '../../processors/dedupe.ts'
import { hash128 } from '../../schemas/hash.ts'
import type { Candidate, Decision } from '../../schemas/types.ts'
import { type Bench, createBench } from './context.ts'

function setUp(): Bench<string, Candidate> {
  const bench = createBench<string, Candidate>([seenStore])
  bench.start(createDedupe())
  return bench
}
function candidate(depth: number, source = 'http://s/'): Candidate {
  return {
    fetchUrl: 'http://h/x',
    host: 'h',
    site: 'h',
    source,
    depth,
    hops: 0,
    linkKind: 'anchor',
    entryKind: 'page',
    seedChain: false,
    improved: false,
  }
}

test('a URL enters once, and again only from nearer', () => {
  const bench = setUp()
  const at = (depth: number): unknown[] => {
    bench.pipe('http://h/x', candidate(depth))
    return bench.take('unseen').map((record) => record.value)
  }
  assert.deepEqual(at(3), [candidate(3)])
  assert.deepEqual(at(3), [])
  assert.deepEqual(at(4), [])
  assert.deepEqual(at(2), [{ ...candidate(2), improved: true }])
  assert.deepEqual(at(2), [])
  assert.equal(bench.store<Uint8Array, number>('seen').get(hash128('http://h/x')), 2)
})

test('depths over 255 count as 255', () => {
  const bench = setUp()
  for (const depth of [300, 256, 255]) bench.pipe('http://h/x', candidate(depth))
  assert.equal(bench.take('unseen').length, 1)
  bench.pipe('http://h/x', candidate(254))
  assert.equal(bench.take('unseen').length, 1)
})

test('repeats are counted and go out at the commit, one decision a source', () => {
  const bench = setUp()
  for (let i = 0; i < 5; i++) bench.pipe(`http://h/${i}`, candidate(1))
  for (let i = 0; i < 5; i++) bench.pipe(`http://h/${i}`, candidate(1, 'http://a/'), 2_000 + i)
  bench.pipe('http://h/0', candidate(1, 'http://b/'), 3_000)
  bench.pipe('http://h/0', null)
  assert.equal(bench.take().length, 5)
  bench.flush()
  const records = bench.take('decisions')
  assert.deepEqual(
    records.map((record) => record.key),
    ['http://a/', 'http://b/'],
  )
  assert.deepEqual(records[0]!.value, {
    processor: 'dedupe',
    fetchId: null,
    total: 5,
    reasons: [{ code: 'repeat', count: 5, examples: ['http://h/0', 'http://h/1', 'http://h/2'] }],
    evidence: null,
    at: 2_004,
  } satisfies Decision)
  assert.equal(records[0]!.timestamp, 2_004)
  bench.flush()
  assert.deepEqual(bench.take(), [])
})

test('sums of an aborted commit are forgotten, what is seen is kept', () => {
  const bench = setUp()
  for (let i = 0; i < 2; i++) bench.pipe('http://h/x', candidate(1))
  bench.start(createDedupe())
  bench.flush()
  assert.equal(bench.take('decisions').length, 0)
  bench.take()
  bench.pipe('http://h/x', candidate(1))
  assert.equal(bench.take('unseen').length, 0)
})

test('in any order: admitted once, last passed on with the least depth', () => {
  const records = fc.array(fc.tuple(fc.constantFrom('http://h/a', 'http://h/b'), fc.nat(300)), { maxLength: 30 })
  fc.assert(
    fc.property(records, (list) => {
      const bench = setUp()
      for (const [key, depth] of list) bench.pipe(key, candidate(depth))
      bench.flush()
      const unseen = bench.take('unseen')
      for (const key of new Set(list.map(([k]) => k))) {
        const passed = unseen.filter((record) => record.key === key).map((record) => record.value as Candidate)
        const least = Math.min(...list.filter(([k]) => k === key).map(([, depth]) => Math.min(depth, 255)))
        assert.equal(passed.filter((value) => !value.improved).length, 1)
        assert.equal(Math.min(passed.at(-1)!.depth, 255), least)
      }
      const repeats = bench.take('decisions').reduce((sum, record) => sum + (record.value as Decision).total, 0)
      assert.equal(unseen.length + repeats, list.length)
    }),
  )
})
