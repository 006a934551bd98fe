import assert from 'node:assert/strict'
import { test } from 'node:test'
import { faultsOf } from './log.ts'
import { simulate } from './simulate.ts'

const small = { hosts: 12, pagesPerHost: 15, pageBytes: 2000, faults: true, delayMs: 5000 }

test('a simulated crawl with faults has every allowed page once, and is the same twice', () => {
  const first = simulate({ ...small, seed: 7 })
  assert.deepEqual(faultsOf(first.verdict), [])
  assert.equal(first.verdict.pagesOnce, first.verdict.expected)
  assert.equal(first.deadLetters, 0)
  assert.equal(simulate({ ...small, seed: 7 }).hash, first.hash)
  assert.notEqual(simulate({ ...small, seed: 8 }).hash, first.hash)
})

test('a random seed has no fault either', (t) => {
  const seed = Number(process.env.WEIR_TEST_SEED ?? Date.now() % 1_000_000)
  t.diagnostic(`seed ${seed}`)
  const { verdict, deadLetters } = simulate({ ...small, seed })
  assert.deepEqual(faultsOf(verdict), [], `seed ${seed}`)
  assert.equal(deadLetters, 0)
})
