import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createPageBudget, isIdle, nextDueMs, parkedByReason, readCounts } from '../../../processors/schedule/read.ts'
import { Harness, leastGapMs } from './harness.ts'
import { candidate, day, hour, minute, outcome, second } from './records.ts'

function pages(host: string, n: number, depth = 0) {
  return Array.from({ length: n }, (_, i) => {
    const url = `http://${host}/${i}`
    return [url, candidate(url, { depth })] as const
  })
}

test('one host, 50 pages: resolve, robots, pages; never sooner than the delay after the last response', () => {
  const h = new Harness()
  h.admit(...pages('a.test', 50))
  h.run(2 * minute)
  h.checkSums()
  assert.deepEqual(
    h.visits.slice(0, 3).map((v) => v.visitKind),
    ['resolve', 'robots', 'pages'],
  )
  assert.equal(new Set(h.requests.map((r) => r.url)).size, 51, 'each page and robots.txt')
  assert.equal(h.requests.length, 51, 'each once')
  assert.ok(leastGapMs(h.requests, 'a.test') >= 1000, `gap ${leastGapMs(h.requests, 'a.test')}`)
  const took = h.requests.at(-1)!.endedAt - h.requests[0]!.startedAt
  assert.ok(took < 51 * 1020 + 1000, `the delay is kept, not exceeded: ${took}`)
  assert.equal(readCounts(h.tasks).states['known/ok'], 50)
  assert.equal(h.states.get('http://a.test/7')!.state, 'known')
  assert.ok(h.visits.every((v) => v.urls.length <= 5))
  assert.ok(isIdle(h.tasks, h.now, 2 * minute))
  assert.deepEqual([...h.scheduled.values()].filter((v) => v !== null).length, 0, 'idle: tombstones alone')
})

test('delay 0: visits follow each other at once, without waiting for a punctuation', () => {
  const h = new Harness({ page: () => ({ status: 200, durationMs: 2 }) }, { minDelayMs: 0 })
  h.admit(...pages('a.test', 300))
  h.run(3 * second)
  h.checkSums()
  assert.equal(readCounts(h.tasks).states['known/ok'], 300)
  assert.ok(Math.max(...h.visits.map((v) => v.urls.length)) > 100)
})

test('Q3: one visit a host is out at a time, whatever comes in', () => {
  const h = new Harness({ page: () => 'silent' })
  h.admit(...pages('a.test', 10))
  h.run(20 * second)
  const issued = h.visits.length
  for (let i = 0; i < 50; i++) h.admit([`http://a.test/x${i}`, candidate(`http://a.test/x${i}`)])
  h.run(20 * second)
  assert.equal(h.visits.length, issued)
  h.checkSums()
})

test('visits: leaseId of host and counter, deadline, classes, fairness', () => {
  const h = new Harness()
  h.admit(...pages('a.test', 40, 1), ['http://a.test/deep', candidate('http://a.test/deep', { depth: 9 })])
  h.run(minute)
  const visits = h.visits.filter((v) => v.visitKind === 'pages')
  assert.match(visits[0]!.leaseId, /^[0-9a-f]{16}-3$/)
  assert.equal(visits[0]!.deadline, visits[0]!.notBefore + 30_000 + 60_000 + 10_000)
  const order = visits.flatMap((v) => v.urls.map((u) => u.key))
  assert.equal(order.indexOf('http://a.test/deep'), 15, 'the 16th pick is of a lower class')
})

test('notBefore is not issued further ahead than the lookahead', () => {
  const h = new Harness()
  h.admit(...pages('a.test', 12))
  const seen = new Map<string, number>()
  for (let t = 0; t < 40_000; t += 50) {
    h.run(50)
    for (const v of h.visits) if (!seen.has(v.leaseId)) seen.set(v.leaseId, h.now)
  }
  for (const v of h.visits)
    assert.ok(v.notBefore - seen.get(v.leaseId)! <= 500, `${v.notBefore} ${seen.get(v.leaseId)}`)
  assert.equal(readCounts(h.tasks).known, 12)
})

// Robots

const robotsBody = (text: string) => ({ status: 200, robotsBody: Buffer.from(text) })

test('R1: a robots.txt that answers 503 or cannot be reached parks its URLs; nothing is fetched', () => {
  for (const reply of [{ status: 503 }, { status: 0, error: 'reset' as const }]) {
    const h = new Harness({ robots: () => reply })
    h.admit(...pages('a.test', 5))
    h.run(30 * second)
    assert.equal(h.requests.filter((r) => !r.url.endsWith('/robots.txt')).length, 0)
    const e = h.explain('http://a.test/3')
    assert.deepEqual([e.state, e.reason], ['parked', 'robots-unreachable'])
    assert.ok(e.next! > h.now && e.next! <= h.now + minute)
    assert.equal(readCounts(h.tasks).states['parked/robots-unreachable'], 5)
    h.checkSums()
    h.run(3 * hour)
    const tries = h.requests.map((r) => r.startedAt)
    const gaps = tries.slice(1).map((t, i) => Math.round((t - tries[i]!) / minute))
    assert.deepEqual(gaps.slice(0, 6), [1, 2, 4, 8, 16, 32])
    assert.ok(gaps.every((g) => g <= 60))
    assert.equal(readCounts(h.tasks).admitted, 5)
  }
})

test('R2: 429 on robots.txt waits as long as it says; the URLs stay', () => {
  const h = new Harness({ robots: (_, n) => (n === 1 ? { status: 429, retryAfterMs: 120_000 } : { status: 404 }) })
  h.admit(...pages('a.test', 2))
  h.run(100 * second)
  assert.equal(h.requests.length, 1)
  assert.equal(h.explain('http://a.test/1').state, 'parked')
  h.run(2 * minute)
  assert.ok(h.requests[1]!.startedAt - h.requests[0]!.endedAt >= 120_000)
  assert.equal(readCounts(h.tasks).states['known/ok'], 2)
})

test('R3: an error is remembered for a minute, then the real rules apply', () => {
  const h = new Harness({ robots: (_, n) => (n === 1 ? { status: 503 } : robotsBody('User-agent: *\nDisallow: /1')) })
  h.admit(...pages('a.test', 3))
  h.run(3 * minute)
  h.checkSums()
  assert.deepEqual(
    h.requests.map((r) => r.url),
    ['http://a.test/robots.txt', 'http://a.test/robots.txt', 'http://a.test/0', 'http://a.test/2'],
  )
  const e = h.explain('http://a.test/1')
  assert.deepEqual([e.state, e.reason], ['parked', 'robots'])
  assert.match(e.evidence!, /^robots.txt [0-9a-f]{16} line 2: Disallow: \/1$/)
  assert.ok(e.next! <= h.now + 30 * day)
  assert.ok(h.decisions.some((d) => d.key === 'http://a.test/1' && d.value.reasons[0]!.code === 'robots'))
  assert.equal(h.states.get('http://a.test/1')!.reason, 'robots')
  const policy = h.policies.get('a.test')!
  assert.deepEqual(policy.origins[0]!.rules, ['Disallow: /1'])
})

test('robots.txt that changes: refused URLs return, allowed ones go; an older copy stays in force when it fails', () => {
  let text = 'User-agent: *\nDisallow: /0'
  let isDown = false
  const h = new Harness({ robots: () => (isDown ? { status: 500 } : robotsBody(text)) }, { recrawlMs: day })
  h.admit(...pages('a.test', 3))
  h.run(minute)
  assert.equal(h.explain('http://a.test/0').reason, 'robots')
  isDown = true
  h.run(day + hour)
  assert.equal(h.explain('http://a.test/0').reason, 'robots')
  assert.equal(h.page('http://a.test/1').fetches, 2, 'the older copy is used')
  isDown = false
  text = 'User-agent: *\nDisallow: /2'
  h.run(2 * day)
  assert.equal(h.explain('http://a.test/0').state, 'known')
  const e = h.explain('http://a.test/2')
  assert.deepEqual([e.state, e.reason], ['parked', 'robots'])
  h.checkSums()
})

test('a robots.txt that refuses everything: looked at again within 30 days', () => {
  const h = new Harness({ robots: (_, n) => robotsBody(n === 1 ? 'User-agent: *\nDisallow: /' : '') })
  h.admit(...pages('a.test', 600))
  h.run(minute)
  assert.equal(readCounts(h.tasks).states['parked/robots'], 600)
  assert.equal(h.requests.length, 1)
  assert.ok(isIdle(h.tasks, h.now, 2 * minute))
  const [parked] = parkedByReason(h.tasks)
  assert.deepEqual([parked!.reason, parked!.count], ['robots', 600])
  assert.ok(parked!.next! <= h.now + 30 * day)
  h.run(30 * day + hour)
  assert.equal(readCounts(h.tasks).states['parked/robots'] ?? 0, 0)
  assert.equal(readCounts(h.tasks).known, 600)
  h.checkSums()
})

test('robots.txt that redirects to another host: parked for a day, with where it leads', () => {
  const h = new Harness({ robots: () => ({ status: 301, location: 'https://other.test/robots.txt' }) })
  h.admit(...pages('a.test', 1))
  h.run(minute)
  const e = h.explain('http://a.test/0')
  assert.equal(e.reason, 'robots-unreachable')
  assert.match(e.evidence!, /other\.test/)
  assert.ok(Math.abs(e.next! - h.requests[0]!.endedAt - day) < second)
})

test('R13: robots.txt is of an origin; origins share the delay and the visit', () => {
  const h = new Harness({
    robots: (url) => (url.includes(':8080') ? robotsBody('User-agent: *\nDisallow: /') : { status: 404 }),
  })
  h.admit(...pages('a.test', 3), ...pages('a.test:8080', 3))
  h.run(minute)
  assert.equal(readCounts(h.tasks).states['known/ok'], 3)
  assert.equal(readCounts(h.tasks).states['parked/robots'], 3)
  assert.equal(readCounts(h.tasks).hosts, 1)
  assert.ok(leastGapMs(h.requests, 'a.test') >= 1000)
  h.checkSums()
})

test('R14: a short crawl-delay lowers nothing, one of a day is obeyed and loses nothing', () => {
  const short = new Harness({ robots: () => robotsBody('User-agent: *\nCrawl-delay: 0.1') })
  short.admit(...pages('a.test', 5))
  short.run(minute)
  assert.ok(leastGapMs(short.requests, 'a.test') >= 1000)
  const long = new Harness({ robots: () => robotsBody('User-agent: *\nCrawl-delay: 86400') })
  long.admit(...pages('a.test', 2))
  long.run(6 * day)
  long.checkSums()
  assert.ok(leastGapMs(long.requests, 'a.test') >= day)
  assert.equal(long.requests.filter((r) => !r.url.endsWith('robots.txt')).length, 2)
  assert.ok(long.visits.every((v) => v.urls.length <= 1))
})

test('robots.txt is asked for again after 24 h', () => {
  const h = new Harness({}, { recrawlMs: hour, maxRecrawlMs: hour })
  h.admit(...pages('a.test', 1))
  h.run(3 * day)
  const robots = h.requests.filter((r) => r.url.endsWith('robots.txt')).map((r) => r.startedAt)
  for (const r of h.requests) {
    if (r.url.endsWith('robots.txt')) continue
    const known = Math.max(...robots.filter((t) => t <= r.startedAt))
    assert.ok(r.startedAt - known <= day, `robots.txt ${r.startedAt - known} ms old`)
  }
  assert.ok(robots.length >= 3 && robots.length <= 4)
})

// Leases

test('a lease that nobody answers expires after deadline and skew; its URLs go back, no attempt is charged', () => {
  const h = new Harness({ page: () => 'silent' })
  h.admit(...pages('a.test', 5))
  h.run(10 * second)
  h.web = {}
  const lost = h.visits.at(-1)!
  assert.equal(lost.visitKind, 'pages')
  assert.equal(readCounts(h.tasks).leased, 5)
  assert.equal(h.explain('http://a.test/2').state, 'leased')
  h.checkSums()
  h.run(lost.deadline + 5000 - h.now - 100)
  assert.equal(h.visits.at(-1), lost, 'not before')
  h.run(2 * minute)
  assert.ok(h.codes().includes('lease-expired'))
  assert.ok(h.visits.at(-1)!.notBefore >= lost.deadline + 1000, 'one delay after the deadline')
  assert.equal(readCounts(h.tasks).states['known/ok'], 5)
  assert.ok(h.visits.at(-1)!.urls.every((u) => u.attempt === 0))
  h.checkSums()
})

test('a late outcome moves nothing, but its facts count', () => {
  const h = new Harness({ page: () => 'silent' })
  h.admit(...pages('a.test', 2))
  h.run(10 * second)
  const lost = h.visits.at(-1)!
  h.web = { page: () => 'silent' }
  h.run(lost.deadline + 10_000 - h.now)
  const current = h.visits.at(-1)!
  assert.notEqual(current.leaseId, lost.leaseId)
  h.tell(
    'http://a.test/0',
    outcome({
      leaseId: lost.leaseId,
      fetchId: `${lost.leaseId}.0.0.0`,
      etag: '"x"',
      startedAt: h.now - 50,
      endedAt: h.now,
    }),
  )
  h.checkSums()
  assert.equal(readCounts(h.tasks).leased, 2, 'the URL is leased by the new visit still')
  assert.equal(h.page('http://a.test/0').etag, '"x"')
  assert.equal(h.stores.hosts.get('a.test')!.lastEndedAt, h.now)
  assert.ok(h.codes().includes('late-outcome'))
  h.tell(
    'http://a.test/0',
    outcome({ leaseId: lost.leaseId, fetchId: 'other.0', status: 503, retryAfterMs: 3_600_000, endedAt: h.now }),
  )
  assert.equal(h.stores.hosts.get('a.test')!.park!.reason, 'back-off')
  h.checkSums()
})

test('restart with void leases: they end at the start plus one delay, nothing is charged', () => {
  const h = new Harness({ page: () => 'silent' })
  h.admit(...pages('a.test', 5))
  h.run(10 * second)
  const lost = h.visits.at(-1)!
  const restartAt = h.now
  h.set({ leasesVoidBeforeMs: restartAt })
  h.web = {}
  h.restart(true)
  h.run(3 * second)
  const next = h.visits.at(-1)!
  assert.notEqual(next.leaseId, lost.leaseId)
  const first = h.visits[h.visits.indexOf(lost) + 1]!
  assert.ok(first.notBefore >= restartAt + 1000, `${first.notBefore - restartAt}`)
  h.run(30 * second)
  assert.equal(readCounts(h.tasks).states['known/ok'], 5)
  assert.ok(h.codes().includes('lease-void'))
  h.checkSums()
})

test('a task that starts again within the process keeps the visits that are out', () => {
  const h = new Harness({ page: () => 'silent' }, { leasesVoidBeforeMs: Date.UTC(2026, 0, 5) })
  h.admit(...pages('a.test', 5))
  h.run(10 * second)
  const issued = h.visits.length
  h.restart()
  h.run(20 * second)
  assert.equal(h.visits.length, issued)
  h.checkSums()
})

test('visit-end: what was not started goes back to the front, nothing is charged, and there is no busy loop', () => {
  const h = new Harness({ page: (url, n) => (url.endsWith('/1') || n > 1 ? {} : 'not-started') }, { minDelayMs: 0 })
  h.admit(...pages('a.test', 4))
  h.run(5 * second)
  assert.equal(readCounts(h.tasks).states['known/ok'], 4)
  assert.ok(h.visits.flatMap((v) => v.urls).every((u) => u.attempt === 0))
  const never = new Harness({ page: () => 'not-started' }, { minDelayMs: 0 })
  never.admit(...pages('a.test', 4))
  never.run(10 * second)
  assert.ok(never.visits.length <= 14, `${never.visits.length} visits in 10 s`)
  never.checkSums()
})

// Hosts in trouble

test('an address that was refused is looked at again at the next start, which may allow it', () => {
  let allowed = false
  const h = new Harness({ dns: () => (allowed ? {} : { error: 'address-refused' }) })
  h.admit(...pages('a.test', 3))
  h.run(day)
  assert.equal(readCounts(h.tasks).states['parked/dns'], 3)
  assert.equal(h.visits.length, 1)
  allowed = true
  h.restart(true)
  h.run(minute)
  assert.equal(readCounts(h.tasks).states['known/ok'], 3)
  h.checkSums()
})

test('dns: NXDOMAIN parks the host for 1 d, 7 d, 30 d; SERVFAIL for 5 min doubling', () => {
  const h = new Harness({ dns: () => ({ error: 'nxdomain' }) })
  h.admit(...pages('a.test', 1000))
  h.run(second)
  assert.equal(readCounts(h.tasks).states['parked/dns'], 1000)
  assert.equal(h.explain('http://a.test/500').reason, 'dns')
  assert.equal(h.scheduled.size > 0 && [...h.scheduled.values()].every((v) => v === null), true)
  h.checkSums()
  const at = (i: number) => h.visits[i]!.notBefore
  h.run(40 * day)
  assert.deepEqual(
    [1, 2, 3].map((i) => Math.round((at(i) - at(i - 1)) / day)),
    [1, 7, 30],
  )
  const s = new Harness({ dns: (_, n) => (n < 4 ? { error: 'servfail' } : {}) })
  s.admit(...pages('a.test', 1))
  s.run(hour)
  const gaps = [1, 2, 3].map((i) => Math.round((s.visits[i]!.notBefore - s.visits[i - 1]!.notBefore) / minute))
  assert.deepEqual(gaps, [5, 10, 20])
  assert.equal(readCounts(s.tasks).known, 1)
})

test('refused: the host backs off 1 min doubling to 6 h, no attempt is charged, no URL is lost', () => {
  const h = new Harness({ page: (_, n) => (n < 3 ? { status: 0, startedAt: 0, error: 'refused' } : {}) })
  h.admit(...pages('a.test', 3))
  h.run(20 * second)
  assert.equal(readCounts(h.tasks).states['parked/back-off'], 3)
  assert.equal(h.explain('http://a.test/0').reason, 'back-off')
  h.checkSums()
  h.run(hour)
  assert.equal(readCounts(h.tasks).known, 3)
  assert.ok(h.visits.flatMap((v) => v.urls).every((u) => u.attempt === 0))
  const down = new Harness({ page: () => ({ status: 0, startedAt: 0, error: 'refused' }) })
  down.admit(...pages('a.test', 1))
  down.run(3 * day)
  const starts = down.visits.filter((v) => v.visitKind === 'pages').map((v) => v.notBefore)
  const gaps = starts.slice(1).map((t, i) => Math.round((t - starts[i]!) / minute))
  assert.deepEqual(gaps.slice(0, 4), [1, 2, 4, 8])
  assert.ok(Math.max(...gaps) <= 361 && gaps.at(-1)! >= 360)
  assert.equal(down.explain('http://a.test/0').reason, 'back-off', 'D8: never gone')
})

test('D8: an outage makes nothing gone', () => {
  let isDown = false
  const h = new Harness(
    { page: () => (isDown ? { status: 0, error: 'connect-timeout', startedAt: 0 } : {}) },
    { recrawlMs: day },
  )
  h.admit(...pages('a.test', 5))
  h.run(hour)
  isDown = true
  h.run(5 * day)
  isDown = false
  h.run(day)
  assert.equal(readCounts(h.tasks).gone, 0)
  assert.equal(readCounts(h.tasks).states['known/ok'], 5)
  h.checkSums()
})

test('Q10: Retry-After blocks the whole host, also longer than an hour', () => {
  const h = new Harness({
    page: (url, n) => (url.endsWith('/0') && n === 1 ? { status: 429, retryAfterMs: 3_400_000 } : {}),
  })
  h.admit(...pages('a.test', 1))
  h.run(10 * second)
  h.admit(...pages('a.test', 20).slice(1))
  assert.equal(readCounts(h.tasks).states['parked/back-off'], 20)
  h.run(3_380_000)
  assert.equal(h.requests.length, 2)
  h.run(2 * minute)
  assert.equal(readCounts(h.tasks).known, 20)
  assert.equal(h.page('http://a.test/0').attempt, 0)
})

test('Q11: 503 without a header doubles the delay up to an hour; it decays with success', () => {
  const h = new Harness({ page: (_, n) => (n <= 14 ? { status: 503 } : {}) }, { recrawlMs: hour })
  h.admit(...pages('a.test', 1))
  h.run(2 * day)
  const own = h.requests.filter((r) => !r.url.endsWith('robots.txt'))
  const gaps = own.slice(1, 15).map((r, i) => Math.round((r.startedAt - own[i]!.endedAt) / second))
  assert.deepEqual(gaps.slice(0, 5), [2, 4, 8, 16, 32])
  assert.ok(Math.max(...gaps) >= 3600 && Math.max(...gaps) <= 3602)
  assert.ok(h.stores.hosts.get('a.test')!.throttledMs < hour)
})

test('a page that answers 503 for ever does not hold up the others', () => {
  const h = new Harness({ page: (url) => (url.endsWith('/0') ? { status: 503 } : {}) })
  h.admit(...pages('a.test', 30))
  h.run(10 * minute)
  assert.equal(readCounts(h.tasks).states['known/ok'], 29)
  assert.equal(h.explain('http://a.test/0').reason, 'back-off')
})

test('tls: one try a day, and http of the same host goes on', () => {
  const h = new Harness({ page: (url) => (url.startsWith('https:') ? { status: 0, startedAt: 0, error: 'tls' } : {}) })
  h.admit(...pages('a.test', 3), ['https://a.test/s', candidate('https://a.test/s')])
  h.run(hour)
  assert.equal(readCounts(h.tasks).states['known/ok'], 3)
  const e = h.explain('https://a.test/s')
  assert.deepEqual([e.state, e.reason], ['parked', 'back-off'])
  assert.ok(Math.abs(e.next! - h.now - day) < hour + minute)
  h.checkSums()
})

test('address-changed: resolved again, nothing charged; a new gate leaves one record of the host', () => {
  let address = '192.0.2.1'
  const h = new Harness({
    dns: () => ({ addresses: [address, '198.51.100.9'] }),
    page: (url, n) => (url.endsWith('/1') && n === 1 ? { status: 0, startedAt: 0, error: 'address-changed' } : {}),
  })
  h.admit(...pages('a.test', 3))
  h.run(2 * second)
  address = '192.0.2.77'
  h.run(30 * second)
  assert.equal(readCounts(h.tasks).states['known/ok'], 3)
  assert.ok(h.codes().includes('gate-changed'))
  assert.equal(h.visits.at(-1)!.gate, 'a:192.0.2.77')
  assert.equal(h.visits.at(-1)!.address, '192.0.2.77')
  h.admit(['http://a.test/new', candidate('http://a.test/new')])
  h.web.page = () => 'silent'
  h.run(10 * second)
  assert.equal([...h.scheduled.values()].filter((v) => v !== null).length, 1, 'one record a host, over all partitions')
  h.checkSums()
})

test('an IP literal is not resolved', () => {
  const h = new Harness()
  h.admit(['http://192.0.2.5/', candidate('http://192.0.2.5/', { site: '192.0.2.5' })])
  h.run(10 * second)
  assert.ok(h.visits.every((v) => v.visitKind !== 'resolve' && v.gate === 'a:192.0.2.5'))
  assert.equal(readCounts(h.tasks).known, 1)
})

// Depth, budgets, recrawl

test('depth: parked, released by a shorter way, or when the limit is raised', () => {
  const h = new Harness({}, { maxDepth: 2 })
  h.admit(...pages('a.test', 3, 3), ['http://a.test/near', candidate('http://a.test/near', { depth: 2 })])
  h.run(10 * second)
  assert.equal(readCounts(h.tasks).states['parked/depth'], 3)
  assert.equal(h.explain('http://a.test/0').evidence, 'depth 3, at most 2')
  h.admit(['http://a.test/0', candidate('http://a.test/0', { depth: 1, improved: true })])
  h.run(10 * second)
  assert.equal(readCounts(h.tasks).states['parked/depth'], 2)
  assert.equal(h.page('http://a.test/0').depth, 1)
  h.checkSums()
  h.set({ maxDepth: 3 })
  h.restart()
  h.run(10 * second)
  assert.equal(readCounts(h.tasks).states['known/ok'], 4)
  h.checkSums()
})

test('budgets: pages of a host, of a site; parked, and free again when raised', () => {
  const h = new Harness({}, { maxPagesPerHost: 7 })
  h.admit(...pages('a.test', 20))
  h.run(minute)
  assert.equal(readCounts(h.tasks).fetched, 7)
  assert.equal(readCounts(h.tasks).states['parked/budget'], 13)
  assert.ok(isIdle(h.tasks, h.now, 2 * minute))
  h.checkSums()
  h.set({ maxPagesPerHost: 20 })
  h.restart()
  h.run(minute)
  assert.equal(readCounts(h.tasks).fetched, 20)
  const site = new Harness({}, { maxPagesPerSite: 9 })
  site.admit(...pages('a.s.test', 10), ...pages('b.s.test', 10))
  site.run(2 * minute)
  assert.equal(readCounts(site.tasks).fetched, 9)
  assert.ok(isIdle(site.tasks, site.now, 2 * minute))
  site.checkSums()
})

test('budget of the whole crawl: never overrun, spent in full, and the crawl is idle then', () => {
  const h: Harness = new Harness({ page: (_, n) => (n === 1 ? 'not-started' : {}) }, { pageBudget: undefined as never })
  h.set({ pageBudget: createPageBudget(25, () => h.tasks) })
  h.restart()
  for (let i = 0; i < 10; i++) h.admit(...pages(`h${i}.test`, 10))
  h.run(5 * minute)
  assert.equal(readCounts(h.tasks).fetched, 25)
  assert.equal(readCounts(h.tasks).states['parked/budget'], 75)
  assert.ok(isIdle(h.tasks, h.now, 2 * minute))
  h.checkSums()
})

test('D6, D7: 304 lengthens the interval, a change shortens it; validators and digest go with the next request', () => {
  const digest = (n: number) => Buffer.alloc(20, n)
  const h = new Harness(
    {
      page: (_, n) =>
        n === 1 || n === 4
          ? { status: 200, etag: `"${n}"`, payloadDigest: digest(n) }
          : { status: 304, revisit: false },
    },
    { recrawlMs: 10 * hour },
  )
  h.admit(...pages('a.test', 1))
  h.run(5 * day)
  const own = h.requests.filter((r) => !r.url.endsWith('robots.txt'))
  const gaps = own.slice(1, 5).map((r, i) => Math.round((10 * (r.startedAt - own[i]!.startedAt)) / hour) / 10)
  assert.deepEqual(gaps.slice(0, 3), [10, 15, 22.5])
  assert.equal(gaps[3], 15)
  const entries = h.visits.filter((v) => v.visitKind === 'pages').map((v) => v.urls[0]!)
  assert.equal(entries[1]!.etag, '"1"')
  assert.deepEqual(Buffer.from(entries[1]!.payloadDigest!), digest(1))
  assert.equal(entries[1]!.lastFetchedAt, own[0]!.startedAt)
  assert.equal(h.page('http://a.test/0').changes, 1)
})

test('404: missing, then gone after a day; a new link moves the next look forward', () => {
  const h = new Harness({ page: () => ({ status: 404 }) })
  h.admit(...pages('a.test', 1, 3))
  h.run(minute)
  assert.deepEqual([h.explain('http://a.test/0').state, h.explain('http://a.test/0').reason], ['known', 'missing'])
  h.run(day + hour)
  assert.equal(h.explain('http://a.test/0').state, 'gone')
  assert.equal(h.requests.filter((r) => !r.url.endsWith('robots.txt')).length, 2)
  assert.ok(h.codes().includes('gone'))
  h.web = {}
  h.admit(['http://a.test/0', candidate('http://a.test/0', { depth: 1, improved: true })])
  h.run(minute)
  assert.equal(h.explain('http://a.test/0').state, 'known')
  assert.equal(h.explain('http://a.test/0').reason, 'ok')
  h.checkSums()
})

test('5xx: attempts after 15 min × 4, at most five, then known(failed); five in a row back the host off', () => {
  const h = new Harness({ page: () => ({ status: 500 }) })
  h.admit(...pages('a.test', 1))
  h.run(3 * day)
  const own = h.requests.filter((r) => !r.url.endsWith('robots.txt'))
  const gaps = own.slice(1).map((r, i) => Math.round((r.startedAt - own[i]!.endedAt) / minute))
  assert.deepEqual(gaps, [15, 60, 240, 960])
  assert.equal(h.explain('http://a.test/0').reason, 'failed')
  const many = new Harness({ page: () => ({ status: 502 }) })
  many.admit(...pages('a.test', 8))
  many.run(15 * second)
  assert.equal(many.stores.hosts.get('a.test')!.park!.reason, 'back-off')
  many.checkSums()
})

// Odd input

test('odd input: outcomes of unknown hosts and URLs are told, candidates that are none are dead letters', () => {
  const h = new Harness()
  h.tell('http://nobody.test/', outcome({ host: 'nobody.test' }))
  assert.ok(h.codes().includes('unknown-host'))
  h.admit(...pages('a.test', 1))
  h.run(5 * second)
  h.tell('http://a.test/unknown', outcome({ endedAt: h.now }))
  assert.ok(h.codes().includes('unknown-url'))
  h.tell('http://a.test/0', outcome({ leaseId: 'a-9', index: 300, fetchId: 'a-9.300.0.0', status: 0 }))
  h.tell('robots:http://a.test/robots.txt', outcome({ outcomeKind: 'robots', leaseId: 'a-9' }))
  h.tell('dns:a.test', outcome({ outcomeKind: 'dns', leaseId: 'a-9' }))
  h.tell('visit:a.test', outcome({ outcomeKind: 'visit-end', leaseId: 'a-9', unstarted: ['http://a.test/0', 'x'] }))
  assert.equal(h.deadLetters(), 0)
  h.admit(['ftp://a.test/', candidate('http://a.test/', { fetchUrl: 'ftp://a.test/' })])
  h.admitted.delete('ftp://a.test/')
  h.tell('x', outcome({ outcomeKind: 'dns' }))
  assert.equal(h.deadLetters(), 2)
  h.checkSums()
})

test('the same outcome twice counts once', () => {
  const h = new Harness({ page: () => 'silent' })
  h.admit(...pages('a.test', 2))
  h.run(5 * second)
  const { leaseId } = h.visits.at(-1)!
  const once = outcome({ leaseId, fetchId: `${leaseId}.0.0.0`, endedAt: h.now, startedAt: h.now - 10 })
  h.tell('http://a.test/0', once)
  h.tell('http://a.test/0', once)
  assert.equal(readCounts(h.tasks).fetched, 1)
  assert.equal(h.page('http://a.test/0').fetches, 1)
  h.checkSums()
})

test('Q1: only a host in back-off is left: due later than the patience, the crawl is idle; sooner, it is not', () => {
  const h = new Harness({ page: () => ({ status: 503, retryAfterMs: 300_000 }) })
  h.admit(...pages('a.test', 1))
  h.run(10 * second)
  assert.ok(isIdle(h.tasks, h.now, 2 * minute))
  assert.ok(!isIdle(h.tasks, h.now, 10 * minute))
  assert.ok(nextDueMs(h.tasks)! > h.now + 4 * minute)
})

test('maxVisits bounds what is out; class 0 goes first, and no host starves', () => {
  const h = new Harness({}, { maxVisits: 2 })
  for (let i = 0; i < 20; i++) h.admit(...pages(`low${i}.test`, 2, 5))
  for (let i = 0; i < 20; i++) h.admit(...pages(`top${i}.test`, 2, 0))
  let most = 0
  for (let t = 0; t < 600; t++) {
    h.run(500)
    most = Math.max(most, readCounts(h.tasks).visits)
  }
  assert.ok(most <= 2)
  assert.equal(readCounts(h.tasks).known, 80)
  h.checkSums()
})
