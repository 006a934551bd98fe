import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defaults } from '../../../processors/schedule/options.ts'
import { newPage, type PageRecord } from '../../../processors/schedule/records.ts'
import { hasChanged, judge, nextIntervalMs } from '../../../processors/schedule/retry.ts'
import type { FetchError } from '../../../schemas/types.ts'
import { day, hour, minute, outcome, startMs } from './records.ts'

const at = startMs

function page(change: Partial<PageRecord> = {}): PageRecord {
  return {
    ...newPage({
      url: 'http://a.test/',
      fetchUrl: 'http://a.test/',
      host: 'a.test',
      origin: 0,
      entryKind: 'page',
      seedChain: false,
      depth: 0,
      hops: 0,
      since: 0,
    }),
    ...change,
  }
}

function fate(change: Parameters<typeof outcome>[0], of: PageRecord = page()) {
  const verdict = judge(of, outcome(change), at, defaults)
  const { url } = verdict
  return url.kind === 'settle'
    ? { host: verdict.host, to: `${url.state}/${url.reason}`, inMs: url.next - at, change: url.change }
    : { host: verdict.host, to: url.kind }
}

const failed = (error: FetchError, status = 0) => fate({ error, status })

test('retry table: names and connections are the host’s fault, nothing is charged', () => {
  assert.deepEqual(failed('nxdomain'), { host: 'name-failure', to: 'stay' })
  assert.deepEqual(failed('servfail'), { host: 'dns-failure', to: 'stay' })
  assert.deepEqual(failed('dns-timeout'), { host: 'dns-failure', to: 'stay' })
  assert.deepEqual(failed('address-changed'), { host: 'address-changed', to: 'stay' })
  assert.deepEqual(failed('address-refused'), { host: 'address-refused', to: 'stay' })
  for (const error of ['refused', 'unreachable', 'reset', 'connect-timeout'] as const) {
    assert.deepEqual(failed(error), { host: 'network', to: 'again' })
  }
  assert.deepEqual(failed('tls'), { host: 'tls', to: 'again' })
})

test('retry table: timeouts of head and body, a reset within the body, charge an attempt', () => {
  for (const error of ['headers-timeout', 'body-timeout', 'total-timeout', 'protocol', 'unknown'] as const) {
    const f = failed(error)
    assert.deepEqual([f.host, f.to, f.inMs, f.change], ['attempt', 'parked/back-off', 15 * minute, { attempt: 1 }])
  }
  assert.equal(failed('reset', 200).to, 'parked/back-off')
})

test('retry table: 408 425 500 502 504 after 15 min × 4, at most five attempts, then known(failed)', () => {
  for (const status of [408, 425, 500, 502, 504, 507]) {
    const waits = [0, 1, 2, 3].map((attempt) => fate({ status }, page({ attempt })).inMs! / minute)
    assert.deepEqual(waits, [15, 60, 240, 960])
    const last = fate({ status }, page({ attempt: 4 }))
    assert.deepEqual([last.to, last.inMs, last.change], ['known/failed', 30 * day, { attempt: 0 }])
    assert.equal(last.host, 'attempt')
  }
})

test('retry table: 429 and 503 are the host’s, not charged', () => {
  assert.deepEqual(fate({ status: 429 }), { host: 'throttled', to: 'again' })
  assert.deepEqual(fate({ status: 503 }, page({ attempt: 4 })), { host: 'throttled', to: 'again' })
})

test('retry table: 401 403 451 are known(forbidden), looked at again after 30 d', () => {
  for (const status of [401, 403, 451]) {
    const f = fate({ status })
    assert.deepEqual([f.host, f.to, f.inMs], ['forbidden', 'known/forbidden', 30 * day])
  }
})

test('retry table: 404 and 410 are gone after two checks at least a day apart; then 30 d × 2', () => {
  for (const status of [404, 410]) {
    const first = fate({ status })
    assert.deepEqual([first.host, first.to, first.inMs], ['success', 'known/missing', day])
    const soon = fate({ status }, page({ missing: 1, missingSince: at - hour }))
    assert.deepEqual([soon.to, soon.inMs], ['known/missing', day - hour])
    const second = fate({ status }, page({ missing: 1, missingSince: at - day }))
    assert.deepEqual([second.to, second.inMs], ['gone/missing', 30 * day])
    const third = fate(
      { status },
      page({ state: 'gone', missing: 2, missingSince: at - 31 * day, recheckMs: 30 * day }),
    )
    assert.deepEqual([third.to, third.inMs], ['gone/missing', 60 * day])
  }
})

test('D8: no error and no 5xx ever makes a missing URL gone', () => {
  const missing = page({ missing: 1, missingSince: at - 9 * day, attempt: 4 })
  const errors: FetchError[] = ['refused', 'reset', 'tls', 'headers-timeout', 'body-timeout', 'nxdomain', 'protocol']
  for (const error of errors) assert.notEqual(fate({ status: 0, error }, missing).to, 'gone/missing')
  for (const status of [500, 502, 503, 429, 403]) assert.notEqual(fate({ status }, missing).to, 'gone/missing')
})

test('retry table: answers', () => {
  const ok = fate({ status: 200 })
  assert.deepEqual([ok.host, ok.to, ok.inMs], ['success', 'known/ok', 7 * day])
  assert.equal(fate({ status: 200, truncated: 'length' }).to, 'known/ok')
  assert.equal(fate({ status: 200, truncated: 'disconnect' }).to, 'known/ok')
  assert.equal(fate({ status: 301, location: 'http://b.test/' }).to, 'known/redirect')
  assert.equal(fate({ status: 304 }, page({ fetches: 1, intervalMs: 7 * day })).inMs, 10.5 * day)
  assert.equal(fate({ status: 302 }).to, 'known/failed')
  assert.equal(fate({ status: 418 }).to, 'known/failed')
  assert.equal(fate({ status: 0 }).to, 'parked/back-off')
  assert.deepEqual(fate({ status: 200 }, page({ missing: 1, missingSince: at - day, attempt: 3 })).change, {
    attempt: 0,
    missing: 0,
    missingSince: null,
    recheckMs: 0,
    intervalMs: 7 * day,
  })
})

test('D6: the interval grows when nothing changed, shrinks when something did, within its bounds', () => {
  assert.equal(nextIntervalMs(0, null, defaults), 7 * day)
  assert.equal(nextIntervalMs(10 * hour, false, defaults), 15 * hour)
  assert.equal(nextIntervalMs(15 * hour, true, defaults), 10 * hour)
  assert.equal(nextIntervalMs(29 * day, false, defaults), 30 * day)
  assert.equal(nextIntervalMs(hour, true, defaults), hour)
})

test('a change is told by the words, else by the payload', () => {
  const a = Buffer.alloc(16, 1)
  const b = Buffer.alloc(16, 2)
  const parse = (contentHash: Uint8Array) => ({
    contentHash,
    simhash: Buffer.alloc(8),
    tokenCount: 9,
    noindex: false,
    nofollow: false,
    canonicalUrl: null,
    linkCount: 0,
  })
  assert.equal(hasChanged(page(), outcome({ parse: parse(a) })), null)
  assert.equal(hasChanged(page({ contentHash: a }), outcome({ parse: parse(a) })), false)
  assert.equal(hasChanged(page({ contentHash: a }), outcome({ parse: parse(b) })), true)
  const digest = Buffer.alloc(20, 3)
  assert.equal(hasChanged(page({ payloadDigest: digest }), outcome({ payloadDigest: Buffer.alloc(20, 4) })), true)
  assert.equal(hasChanged(page({ payloadDigest: digest }), outcome({ payloadDigest: Buffer.from(digest) })), false)
})
