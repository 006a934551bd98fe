import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createVirtualClock } from '../../connectors/clock/virtual.ts'
import type { DnsResult } from '../../connectors/dns/types.ts'
import type { HttpOutcome, HttpRequest } from '../../connectors/http/types.ts'
import type { FaultRates } from './faults.ts'
import { createSimulatedWeb } from './in-process.ts'
import { createWebModel, type WebOptions } from './model.ts'

const startMs = Date.UTC(2026, 0, 1)

test('one request gives the page, its times and one line in the log', () => {
  const { clock, web, model } = open({})
  const host = model.hosts[0]!
  clock.advanceTo(500)
  const outcome = fetchOne(web, clock, {
    url: `http://${host}/`,
    headers: [['user-agent', 'test']],
  })
  assert.equal(outcome.kind, 'response')
  if (outcome.kind !== 'response') return
  const [entry] = web.log
  assert.equal(outcome.status, 200)
  assert.equal(outcome.body, outcome.rawBody)
  assert.match(String(outcome.body), /^<!DOCTYPE html>/)
  assert.match(String(outcome.requestHead), /^GET \/ HTTP\/1\.1\r\nhost: h001\.localhost\r\nuser-agent: test\r\n\r\n$/)
  assert.equal(outcome.times.startedAtMs, startMs + 500 + model.connectMs(host))
  assert.equal(entry?.startMs, outcome.times.startedAtMs)
  // A wall clock has whole milliseconds; the web's own log is finer.
  assert.equal(Math.floor(entry?.endMs ?? 0), outcome.times.endedAtMs)
  assert.ok(outcome.times.headersMs > 0 && outcome.times.endedMonotonicMs > outcome.times.startedMonotonicMs)
  assert.deepEqual([entry?.status, entry?.complete, entry?.address, web.log.length], [200, true, '127.0.0.1', 1])
})

test('nothing is written when the start is refused', () => {
  const { clock, web, model } = open({})
  const outcome = fetchOne(web, clock, {
    url: model.seeds()[0]!,
    mayStart: () => false,
  })
  assert.deepEqual(outcome, { kind: 'not-started' })
  assert.equal(web.log.length, 0)
})

test('a host that is down refuses, and is back later', () => {
  const { clock, web, model } = open({ faults: { down: 1 } })
  const { down } = model.site(model.hosts[0]!)!.faults
  clock.advanceTo(down!.fromMs + 1)
  const outcome = fetchOne(web, clock, { url: model.seeds()[0]! })
  assert.deepEqual([outcome.kind, outcome.kind === 'error' && outcome.error], ['error', 'refused'])
  assert.ok(outcome.kind === 'error' && !outcome.written && outcome.times.startedAtMs === 0)
  assert.equal(web.log.length, 0)
  clock.advanceTo(down!.toMs)
  assert.equal(fetchOne(web, clock, { url: model.seeds()[0]! }).kind, 'response')
})

test('an address that is not the host’s gets no answer and is in the log', () => {
  const { clock, web, model } = open({ addresses: ['127.0.0.1', '127.0.0.2'] })
  const outcome = fetchOne(web, clock, {
    url: model.seeds()[0]!,
    address: '127.0.0.2',
  })
  assert.equal(outcome.kind, 'error')
  assert.deepEqual([web.log[0]?.address, web.log[0]?.status], ['127.0.0.2', 0])
})

test('deadlines: response head, whole request, minimum rate', () => {
  const slow = open({ faults: { pageSlow: 1 } })
  const errors = slow.model.hosts.map((host) => {
    const outcome = fetchOne(slow.web, slow.clock, {
      url: `http://${host}/`,
      headersTimeoutMs: 1_500,
      totalTimeoutMs: 1_900,
    })
    return outcome.kind === 'error' ? outcome.error : outcome.kind === 'response' ? outcome.bodyError : outcome.kind
  })
  assert.ok(errors.includes('headers-timeout'), String(errors))
  assert.ok(errors.includes('total-timeout'), String(errors))
  for (const entry of slow.web.log) assert.ok(!entry.complete || entry.path !== '/' || entry.status !== 200)

  const drip = open({ faults: { pageDrip: 1 } })
  const url = drip.model.allowedPages().keys().next().value!
  const first = fetchOne(drip.web, drip.clock, { url, minBytesPerSec: 1_000 })
  assert.ok(first.kind === 'response' && first.truncated === 'time' && first.bodyError === 'body-timeout')
  assert.ok(first.kind === 'response' && first.body.length > 0)
  const second = fetchOne(drip.web, drip.clock, { url, minBytesPerSec: 1_000 })
  assert.ok(second.kind === 'response' && second.truncated === 'none')
})

test('resets: before the head an error, in the body a truncated response', () => {
  const { clock, web, model } = open({ faults: { pageReset: 1 } })
  const kinds = new Set<string>()
  for (const url of model.allowedPages().keys()) {
    const outcome = fetchOne(web, clock, { url })
    if (outcome.kind === 'error') kinds.add(`error ${outcome.error} ${outcome.written}`)
    if (outcome.kind === 'response') kinds.add(`response ${outcome.truncated} ${outcome.bodyError}`)
    const again = fetchOne(web, clock, { url })
    assert.ok(again.kind === 'response' && again.truncated === 'none')
  }
  assert.deepEqual([...kinds].sort(), ['error reset true', 'response disconnect reset'])
})

test('a body that is not wanted or too long is cut, and the server knows', () => {
  const { clock, web, model } = open({})
  const url = model.allowedPages().keys().next().value!
  const types: (string | null)[] = []
  const refused = fetchOne(web, clock, {
    url,
    accepts: (type) => types.push(type) > 1,
  })
  assert.ok(refused.kind === 'response' && refused.truncated === 'type' && refused.body.length === 0)
  assert.deepEqual(types, ['text/html; charset=utf-8'])
  const cut = fetchOne(web, clock, { url, maxBodyBytes: 100 })
  assert.ok(cut.kind === 'response' && cut.truncated === 'length' && cut.body.length === 100)
  assert.deepEqual(
    web.log.map((entry) => entry.complete),
    [false, false],
  )
})

test('gzip is given to who accepts it', () => {
  const { clock, web, model } = open({ gzip: true })
  const host = model.hosts.find((name) => model.site(name)!.gzip)!
  const url = [...model.allowedPages().keys()].find((page) => page.startsWith(`http://${host}/`))!
  const plain = fetchOne(web, clock, { url })
  const coded = fetchOne(web, clock, {
    url,
    headers: [['accept-encoding', 'gzip']],
  })
  assert.ok(plain.kind === 'response' && coded.kind === 'response')
  assert.ok(coded.rawBody.length < plain.rawBody.length)
  assert.deepEqual(coded.body, plain.body)
})

test('a cancelled request ends at once for the server, and its outcome comes later', () => {
  const { clock, web, model } = open({})
  const outcomes: HttpOutcome[] = []
  const { cancel } = web.http.request(request({ url: model.seeds()[0]! }), (outcome) => outcomes.push(outcome))
  clock.advanceTo(model.connectMs(model.hosts[0]!) + 1)
  cancel()
  assert.equal(outcomes.length, 0)
  assert.equal(web.log[0]?.endMs, clock.nowMs())
  clock.advanceTo(100_000)
  assert.equal(outcomes.length, 1)
  assert.ok(outcomes[0]?.kind === 'error' && outcomes[0].error === 'reset')
})

test('the resolver answers once and later, with errors first where names fail', () => {
  const { clock, web, model } = open({ faults: { dns: 1 } })
  const host = model.hosts[0]!
  const results: DnsResult[] = []
  for (let i = 0; i < 4; i++) {
    web.resolver.resolve(host, (result) => results.push(result))
    assert.equal(results.length, i)
    clock.advanceTo(clock.monotonicMs() + 10_000)
  }
  assert.equal(results[0]?.kind, 'error')
  assert.deepEqual(results[3]?.kind === 'ok' && results[3].addresses, ['127.0.0.1'])
})

test('a client with a clock that is off leaves the server’s stamps alone', () => {
  const { clock, web, model } = open({})
  const off = { ...clock, nowMs: () => clock.nowMs() + 2_000 }
  let startedAtMs = 0
  web.client(off).http.request(request({ url: model.seeds()[0]! }), (outcome) => {
    if (outcome.kind === 'response') startedAtMs = outcome.times.startedAtMs
  })
  clock.advanceTo(100_000)
  assert.equal(startedAtMs, web.log[0]!.startMs + 2_000)
})

function open(over: Partial<WebOptions> & { faults?: boolean | Partial<FaultRates> }) {
  const model = createWebModel({
    seed: 5,
    hosts: 8,
    pagesPerHost: 8,
    pageBytes: 2_000,
    faults: false,
    ...over,
  })
  const clock = createVirtualClock(startMs)
  return { model, clock, web: createSimulatedWeb(model, clock) }
}

function request(over: Partial<HttpRequest> & { url: string }): HttpRequest {
  return {
    address: '127.0.0.1',
    headers: [],
    maxBodyBytes: 1_000_000,
    connectTimeoutMs: 10_000,
    headersTimeoutMs: 30_000,
    totalTimeoutMs: 60_000,
    minBytesPerSec: 0,
    accepts: () => true,
    mayStart: () => true,
    ...over,
  }
}

function fetchOne(
  { http }: ReturnType<typeof createSimulatedWeb>,
  clock: ReturnType<typeof createVirtualClock>,
  over: Partial<HttpRequest> & { url: string },
): HttpOutcome {
  const outcomes: HttpOutcome[] = []
  http.request(request(over), (outcome) => outcomes.push(outcome))
  assert.equal(outcomes.length, 0, 'never from within request')
  clock.advanceTo(clock.monotonicMs() + 400_000)
  assert.equal(outcomes.length, 1, 'exactly once')
  return outcomes[0]!
}
