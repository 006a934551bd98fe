/** The large simulation, twice with one seed and once with another; `npm run simulate` is one such run. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { faultsOf } from '../web/log.ts'
import { simulate } from '../web/simulate.ts'

const large = { hosts: 200, pagesPerHost: 100, pageBytes: 5000, faults: true, delayMs: 5000 }

test('200 hosts of 100 pages with faults: all had once, nobody hurt, equal hashes for equal seeds', (t) => {
  const runs = [1, 1, 2].map((seed) => {
    const startedMs = performance.now()
    const run = simulate({ ...large, seed })
    t.diagnostic(
      `seed ${seed}: ${run.verdict.requests} requests, ${run.verdict.pagesOnce} of ${run.verdict.expected} pages, hash ${run.hash.slice(0, 16)}, ${((performance.now() - startedMs) / 1000).toFixed(1)} s`,
    )
    assert.deepEqual(faultsOf(run.verdict), [])
    assert.equal(run.deadLetters, 0)
    return run
  })
  assert.equal(runs[0]!.hash, runs[1]!.hash)
  assert.notEqual(runs[0]!.hash, runs[2]!.hash)
})
