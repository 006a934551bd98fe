import assert from 'node:assert/strict'
import { test } from 'node:test'
import { faultsOf, judge, staticFacts, type WebFacts, type WebRequest } from './log.ts'

const pages = ['http://h.localhost/', 'http://h.localhost/a', 'http://h.localhost/b']
const facts: WebFacts = {
  ...staticFacts('http://h.localhost', pages),
  disallowedPages: () => new Set(['http://h.localhost/private']),
}
const options = { minDelayMs: 1_000 }

/** robots.txt at 0, then a page every two seconds, each taking 100 ms. */
function polite(): WebRequest[] {
  return ['/robots.txt', '/', '/a', '/b'].map((path, i) => request(path, i * 2_000))
}

function request(path: string, startMs: number, over: Partial<WebRequest> = {}): WebRequest {
  return {
    host: 'h.localhost',
    path,
    startMs,
    endMs: startMs + 100,
    status: 200,
    complete: true,
    retryAfterMs: null,
    address: '127.0.0.1',
    ...over,
  }
}

test('a polite and complete crawl has no faults', () => {
  const verdict = judge(polite(), facts, options)
  assert.deepEqual(faultsOf(verdict), [])
  assert.deepEqual([verdict.requests, verdict.expected, verdict.pagesOnce], [4, 3, 3])
  assert.deepEqual(faultsOf(judge(polite().reverse(), facts, options)), [], 'whatever the order of the log')
})

test('a request that starts while another is open is an overlap', () => {
  const log = polite()
  log[2] = request('/a', 2_050)
  assert.deepEqual(judge(log, facts, options).overlaps, ['http://h.localhost/a'])
  const open = polite()
  open[1] = request('/', 2_000, { endMs: null })
  assert.deepEqual(judge(open, facts, options).overlaps, ['http://h.localhost/a', 'http://h.localhost/b'])
})

test('requests on different hosts do not disturb each other', () => {
  const other = polite().map((r) => ({
    ...r,
    host: 'other.localhost',
    startMs: r.startMs + 50,
    endMs: r.startMs + 150,
  }))
  const both: WebFacts = {
    ...facts,
    urlOf: (host, path) => `http://${host}${path}`,
  }
  assert.deepEqual(faultsOf(judge([...polite(), ...other], both, options)), [])
})

test('a gap is measured from the last response end, and may be shorter by the tolerance', () => {
  const log = polite()
  log[3] = request('/b', 5_080)
  const { shortGaps } = judge(log, facts, options)
  assert.deepEqual(shortGaps, [{ url: 'http://h.localhost/b', gapMs: 980, requiredMs: 1_000 }])
  assert.deepEqual(judge(log, facts, { ...options, toleranceMs: 20 }).shortGaps, [])
  assert.equal(judge(log, facts, { ...options, toleranceMs: 19 }).shortGaps.length, 1)
})

test('a gap counts from the latest end, not from the last request', () => {
  const log = polite()
  log[1] = request('/', 2_000, { endMs: 3_900 })
  assert.equal(judge(log, facts, options).shortGaps[0]?.gapMs, 100)
})

test('the crawl-delay holds from when robots.txt is known', () => {
  const slow: WebFacts = { ...facts, crawlDelayMs: () => 3_000 }
  assert.equal(judge(polite(), slow, options).shortGaps.length, 3)
  const retried = [request('/robots.txt', -2_000, { status: 503 }), ...polite()]
  assert.equal(judge(retried, slow, options).shortGaps.length, 3, 'not before: nobody knew of it')
})

test('with a factor the gap grows with the response time', () => {
  assert.deepEqual(judge(polite(), facts, { ...options, factor: 10 }).shortGaps, [])
  const long = judge(polite(), facts, { ...options, factor: 30 }).shortGaps
  assert.deepEqual([long.length, long[0]?.requiredMs], [3, 3_000])
  assert.deepEqual(judge(polite(), facts, { ...options, factor: 30, maxDelayMs: 1_500 }).shortGaps, [])
})

test('a forbidden page that was asked for is told', () => {
  const log = [...polite(), request('/private', 9_000)]
  assert.deepEqual(judge(log, facts, options).disallowed, ['http://h.localhost/private'])
})

test('missing and repeated pages are told; a broken answer counts for nothing', () => {
  const log = [...polite(), request('/a', 8_000), request('/a', 10_000)]
  const twice = judge(log, facts, options)
  assert.deepEqual([twice.repeated, twice.missing, twice.pagesOnce], [['http://h.localhost/a'], [], 2])
  const broken = polite()
  broken[3] = request('/b', 6_000, { complete: false })
  assert.deepEqual(judge(broken, facts, options).missing, ['http://h.localhost/b'])
  assert.deepEqual(faultsOf(judge([...broken, request('/b', 8_000)], facts, options)), [], 'tried again and had')
  const failed = [...polite(), request('/a', -2_000, { status: 500 })]
  assert.deepEqual(judge(failed, facts, options).repeated, [])
})

test('no page may be asked for before robots.txt is answered', () => {
  const early = polite()
  early[0] = request('/robots.txt', 8_000)
  assert.equal(judge(early, facts, options).beforeRobots.length, 3)
  for (const over of [{ status: 503 }, { status: 429 }, { status: 301 }, { complete: false }, { status: 0 }]) {
    const unanswered = polite()
    unanswered[0] = request('/robots.txt', 0, over)
    assert.equal(judge(unanswered, facts, options).beforeRobots.length, 3, JSON.stringify(over))
  }
  const none = polite()
  none[0] = request('/robots.txt', 0, { status: 404 })
  assert.deepEqual(judge(none, facts, options).beforeRobots, [], 'no robots.txt is an answer')
})

test('a robots.txt that was moved is answered where it is', () => {
  const moved: WebFacts = { ...facts, robotsPath: () => '/policy/robots.txt' }
  assert.equal(judge(polite(), moved, options).beforeRobots.length, 3)
  const log = [
    request('/robots.txt', -4_000, { status: 301 }),
    request('/policy/robots.txt', -2_000),
    ...polite().slice(1),
  ]
  assert.deepEqual(faultsOf(judge(log, moved, options)), [])
})

test('a Retry-After holds for the whole host', () => {
  const log = polite()
  log[1] = request('/', 2_000, { status: 503, retryAfterMs: 3_000 })
  const { earlyRetries } = judge([...log, request('/', 8_000)], facts, options)
  assert.deepEqual(earlyRetries, [{ url: 'http://h.localhost/a', gapMs: 1_900, requiredMs: 3_000 }])
})

test('what nothing links to and wrong addresses are told', () => {
  const strict: WebFacts = {
    ...facts,
    isKnown: (_host, path) => path !== '/trap',
    addressOf: () => '127.0.0.1',
  }
  const log = [...polite(), request('/trap', 8_000), request('/b', -5_000, { address: '127.0.0.9', status: 0 })]
  const verdict = judge(log, strict, options)
  assert.deepEqual(verdict.unexpected, ['http://h.localhost/trap'])
  assert.deepEqual(verdict.wrongAddress, ['http://h.localhost/b'])
})
