import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nextDueMs } from '../../../processors/schedule/read.ts'
import { recordsOf } from './audit.ts'
import { type Answer, dayMs, hourMs, minuteMs, page, Script, startMs } from './scripted.ts'

const root = 'http://a.test/'
const none = { status: 404 }

test('Q1: one host in back-off and nothing else: ends, and says what is parked until when', () => {
  const crawl = new Script({
    seeds: [root],
    answer: ({ path }) => {
      if (path === '/robots.txt') return none
      return path === '/' ? page('/x', '/y') : { status: 503, headers: { 'retry-after': '3400' } }
    },
  })
  const tookMs = crawl.run()
  assert.ok(tookMs < minuteMs, `${tookMs} ms`)
  assert.deepEqual(crawl.counts(), { 'known/ok': 1, 'parked/back-off': 2 })
  const [parked] = crawl.parked()
  const asked = crawl.seen.at(-1)!
  assert.equal(parked!.count, 2)
  assert.ok(Math.abs(parked!.next! - (startMs + asked.endMs + 3_400_000)) < 10)
  assert.ok(nextDueMs(crawl.tasks)! > crawl.clock.nowMs() + 2 * minuteMs)
})

test('Q1: a retry that is due within the patience keeps the crawl alive', () => {
  const crawl = new Script({
    seeds: [root],
    answer: ({ path, nth }) => {
      if (path === '/robots.txt') return none
      return path === '/' || nth > 1 ? page('/x') : { status: 503, headers: { 'retry-after': '100' } }
    },
  })
  crawl.run()
  assert.deepEqual(crawl.counts(), { 'known/ok': 2 })
})

test('Q1: URLs that wait for nothing but the delay of their host keep the crawl alive, whatever the patience', () => {
  const crawl = new Script({
    seeds: [root],
    punctuateMs: 5000,
    answer: ({ path }) =>
      path === '/robots.txt' ? { body: 'User-agent: *\nCrawl-delay: 300' } : page('/x', '/y', '/z'),
  })
  crawl.run({ patienceMs: 0 })
  assert.deepEqual(crawl.counts(), { 'known/ok': 4 })
})

test('Q2: a host with 20,000 URLs starves nobody, and nobody starves it', () => {
  const hosts = Array.from({ length: 50 }, (_, i) => `h${i}.test`)
  const crawl = new Script({
    seeds: ['http://big.test/', ...hosts.map((host) => `http://${host}/`)],
    answer: ({ host, path }) => {
      if (path === '/robots.txt') return none
      const index = /^\/index(\d)$/.exec(path)
      if (host === 'big.test') {
        if (path === '/') return page('/index0', '/index1', '/index2', '/index3')
        return index === null
          ? page()
          : page(...Array.from({ length: 5000 }, (_, i) => `/p${Number(index[1]) * 5000 + i}`))
      }
      return path === '/' ? page(...Array.from({ length: 9 }, (_, i) => `/p${i}`)) : page()
    },
  })
  crawl.advance(20_000)
  for (const host of hosts) {
    const own = crawl.seen.filter((s) => s.host === host)
    assert.equal(own.length, 11, `${host} has had ${own.length} requests`)
    assert.ok(own.at(-1)!.endMs < 15_000, `${host} was done at ${own.at(-1)!.endMs} ms`)
  }
  const big = crawl.seen.filter(({ host }) => host === 'big.test')
  assert.ok(big.length >= 17, `${big.length} requests to the big one`)
  const counts = crawl.counts()
  assert.equal(
    Object.values(counts).reduce((a, b) => a + b),
    20_005 + 500,
  )
  crawl.audit()
})

for (const [form, value] of [
  ['seconds', () => '3400'],
  ['a date', (atMs: number) => new Date(startMs + atMs + 3_400_000).toUTCString()],
] as const) {
  test(`Q10: Retry-After as ${form}: the whole host waits as long`, () => {
    const crawl = new Script({
      seeds: [root],
      answer: ({ path, nth, atMs }) => {
        if (path === '/robots.txt') return none
        if (path === '/') return page('/a', '/b', '/c', '/d', '/e', '/f')
        return path === '/b' && nth === 1 ? { status: 429, headers: { 'retry-after': value(atMs) } } : page()
      },
    })
    crawl.run({ patienceMs: 2 * hourMs })
    assert.deepEqual(crawl.counts(), { 'known/ok': 7 })
    const at = crawl.seen.findIndex(({ status }) => status === 429)
    const gap = crawl.seen[at + 1]!.startMs - crawl.seen[at]!.endMs
    // A date has whole seconds.
    assert.ok(gap >= 3_398_000 && gap < 3_420_000, `${gap} ms`)
  })
}

test('Q10: a Retry-After of weeks parks the host for a day; one of the past, or nonsense, is like none', () => {
  for (const [value, least, most] of [
    ['99999999', dayMs, dayMs + minuteMs],
    ['-5', 1000, 10_000],
    ['0', 1000, 10_000],
    ['soon', 1000, 10_000],
    ['Wed, 21 Oct 2015 07:28:00 GMT', 1000, 10_000],
    ['1e9', 1000, 10_000],
  ] as const) {
    const crawl = new Script({
      seeds: [root],
      punctuateMs: 5000,
      answer: ({ path, nth }) => {
        if (path === '/robots.txt') return none
        return nth === 1 ? { status: 503, headers: { 'retry-after': value } } : page()
      },
    })
    crawl.run({ patienceMs: 2 * dayMs, stepMs: minuteMs })
    const pages = crawl.seen.filter(({ url }) => url === root)
    const gap = pages[1]!.startMs - pages[0]!.endMs
    assert.ok(gap >= least && gap <= most + 10_000, `${value}: ${gap} ms`)
    assert.deepEqual(crawl.counts(), { 'known/ok': 1 })
  }
})

test('Q11: 503 without the header: twice as slow each time, up to an hour, and eased by success', () => {
  let down = true
  const crawl = new Script({
    seeds: [root],
    punctuateMs: 2000,
    answer: ({ path }) => {
      if (path === '/robots.txt') return none
      if (path !== '/' && down) return { status: 503 }
      return page(...Array.from({ length: 40 }, (_, i) => `/p${i}`))
    },
  })
  crawl.advance(3 * hourMs)
  const gapsOf = (list: typeof crawl.seen): number[] => list.slice(1).map((s, i) => s.startMs - list[i]!.endMs)
  const failing = crawl.seen.filter(({ status }) => status === 503)
  const gaps = gapsOf(failing)
  assert.ok(failing.length >= 8 && failing.length <= 16, `${failing.length} requests in 3 h: ${gaps}`)
  gaps.reduce((before, gap) => {
    assert.ok(gap >= Math.min(1.9 * before, hourMs * 0.99), `gaps: ${gaps}`)
    return gap
  })
  assert.equal(crawl.counts()['parked/back-off'], 40)
  down = false
  const had = crawl.seen.length
  crawl.run({ patienceMs: 2 * hourMs, maxMs: 20 * dayMs, stepMs: minuteMs })
  assert.deepEqual(crawl.counts(), { 'known/ok': 41 })
  const after = gapsOf(crawl.seen.slice(had)).filter((gap) => gap > 0)
  assert.ok(after.at(-1)! < after[0]! / 5, `eased from ${after[0]} to ${after.at(-1)}`)
})

test('a host that dies in the middle and comes back loses nothing, and no attempt is charged', () => {
  const crawl = new Script({
    seeds: [root],
    answer: ({ path, atMs }) => {
      if (atMs > 5000 && atMs < 20 * minuteMs) return { error: atMs < 10 * minuteMs ? 'refused' : 'reset' }
      return path === '/robots.txt' ? none : page(...Array.from({ length: 20 }, (_, i) => `/p${i}`))
    },
  })
  crawl.run({ patienceMs: 7 * hourMs, stepMs: minuteMs })
  assert.deepEqual(crawl.counts(), { 'known/ok': 21 })
  const vain = crawl.seen.filter(({ status }) => status === 0)
  assert.ok(vain.length <= 7, `${vain.length} requests while it was down`)
  for (const { value } of recordsOf(crawl.records, 'fetched')) assert.equal(value.attempt, 0)
})

test('hosts at one address are each crawled at their own pace', () => {
  const crawl = new Script({
    seeds: ['http://a.test/', 'http://b.test/', 'http://c.other/'],
    answer: ({ path }) => (path === '/robots.txt' ? none : page('/x', '/y', '/z')),
  })
  const tookMs = crawl.run()
  assert.deepEqual(crawl.counts(), { 'known/ok': 12 })
  assert.ok(tookMs < 10_000, `${tookMs} ms`)
})

test('a name that stops to exist, one that never did, one whose address moves, and one without any', () => {
  const crawl = new Script({
    seeds: ['http://never.test/', 'http://servfail.test/', 'http://moves.test/', 'http://empty.test/'],
    answer: ({ path }) => (path === '/robots.txt' ? none : page('/x')),
    resolve(host, atMs) {
      if (host === 'moves.test') {
        return { kind: 'ok', addresses: [atMs < minuteMs ? '192.0.2.1' : '2001:db8::1'], ttlMs: minuteMs }
      }
      if (host === 'empty.test') return { kind: 'ok', addresses: [], ttlMs: minuteMs }
      return { kind: 'error', error: host === 'never.test' ? 'nxdomain' : 'servfail', message: `resolving ${host}` }
    },
  })
  crawl.run()
  assert.deepEqual(crawl.counts(), { 'known/ok': 2, 'parked/dns': 3 })
  assert.ok(crawl.seen.every(({ host }) => host === 'moves.test'))
})

test('D6: an unchanged page is asked for less and less often, with its validators', () => {
  const crawl = new Script({
    seeds: [root],
    punctuateMs: hourMs,
    schedule: { recrawlMs: dayMs },
    answer: ({ path, header }) => {
      if (path === '/robots.txt') return none
      if (path !== '/') return page()
      if (header('if-none-match') === '"v1"') return { status: 304, headers: { etag: '"v1"' } }
      const answer = page('/child')
      return { ...answer, headers: { ...answer.headers, etag: '"v1"' } }
    },
  })
  crawl.advance(25 * dayMs)
  const visits = crawl.seen.filter(({ url }) => url === root)
  assert.equal(visits.length, 7)
  assert.deepEqual([...new Set(visits.map(({ status }) => status))], [200, 304])
  const gaps = visits.slice(1).map((v, i) => v.startMs - visits[i]!.startMs)
  gaps.slice(1).forEach((gap, i) => {
    assert.ok(gap > 1.3 * gaps[i]!, `intervals in days: ${gaps.map((g) => g / dayMs)}`)
  })
  // D7: what an unchanged page links to is visited as before.
  assert.ok(crawl.times('http://a.test/child') >= 4)
  assert.equal(crawl.state('http://a.test/child'), 'known/ok')
  crawl.audit()
})

test('D8: an outage makes nothing gone; two 404 a day apart do, and a page that is back is known again', () => {
  const crawl = new Script({
    seeds: [root],
    punctuateMs: hourMs,
    schedule: { recrawlMs: 2 * dayMs, maxRecrawlMs: 2 * dayMs },
    answer: ({ path, atMs }) => {
      if (atMs > dayMs && atMs < 4 * dayMs) return { error: 'connect-timeout', takesMs: 10_000 }
      if (path === '/robots.txt') return none
      if (path === '/lost' && atMs > 4 * dayMs) return none
      if (path === '/away' && atMs > 4 * dayMs && atMs < 30 * dayMs) return { status: 410 }
      return page('/lost', '/away', '/stays')
    },
  })
  const url = (path: string) => `http://a.test/${path}`
  crawl.advance(dayMs)
  assert.deepEqual(crawl.counts(), { 'known/ok': 4 })
  crawl.advance(2.5 * dayMs)
  assert.deepEqual(crawl.counts(), { 'parked/robots-unreachable': 4 })
  crawl.advance(1.5 * dayMs)
  assert.equal(crawl.state(url('stays')), 'known/ok')
  assert.equal(crawl.state(url('lost')), 'known/missing')
  crawl.advance(2 * dayMs)
  assert.equal(crawl.state(url('lost')), 'gone/missing')
  assert.equal(crawl.state(url('away')), 'gone/missing')
  crawl.advance(80 * dayMs)
  assert.equal(crawl.state(url('lost')), 'gone/missing')
  assert.equal(crawl.state(url('away')), 'known/ok')
  crawl.audit()
})

test('a page that always fails is given five attempts and is never dropped', () => {
  const crawl = new Script({
    seeds: [root],
    punctuateMs: minuteMs,
    answer: ({ path }) => (path === '/robots.txt' ? none : path === '/' ? page('/x') : { status: 500 }),
  })
  crawl.advance(6 * dayMs)
  crawl.audit()
  assert.equal(crawl.state('http://a.test/x'), 'known/failed')
  assert.equal(crawl.times('http://a.test/x'), 5)
})

test('depth parks, and a shorter way lets go', () => {
  const chain: { [path: string]: Answer } = {
    '/': page('/1'),
    '/1': page('/2'),
    '/2': page('/3'),
    '/3': page('/4'),
    '/4': page(),
  }
  const crawl = new Script({
    seeds: [root, 'http://b.test/'],
    scope: 'any',
    schedule: { maxDepth: 2 },
    answer: ({ host, path }) => {
      if (path === '/robots.txt') return host === 'b.test' ? { status: 404, takesMs: 20_000 } : none
      return host === 'b.test' ? page('http://a.test/3') : (chain[path] ?? null)
    },
  })
  crawl.advance(15_000)
  assert.equal(crawl.state('http://a.test/3'), 'parked/depth')
  crawl.run()
  assert.equal(crawl.state('http://a.test/3'), 'known/ok')
  assert.equal(crawl.state('http://a.test/4'), 'known/ok')
  assert.equal(Object.keys(crawl.states()).length, 6)
})

test('budgets park: pages of a host, of a site', () => {
  const answer = ({ path }: { path: string }) =>
    path === '/robots.txt' ? none : page(...Array.from({ length: 9 }, (_, i) => `/p${i}`))
  const byHost = new Script({ seeds: [root, 'http://b.test/'], schedule: { maxPagesPerHost: 4 }, answer })
  byHost.run()
  assert.deepEqual(byHost.counts(), { 'known/ok': 8, 'parked/budget': 12 })
  assert.equal(byHost.asked().length, 8)
  const bySite = new Script({
    seeds: ['http://x.a.test/', 'http://y.a.test/', 'http://b.test/'],
    schedule: { maxPagesPerSite: 5 },
    answer,
  })
  bySite.run({ patienceMs: minuteMs })
  assert.deepEqual(bySite.counts(), { 'known/ok': 10, 'parked/budget': 20 })
})

test('P1, P2: everything restarts in the middle, three times: nothing is lost, links are not taken in twice', () => {
  const paths = Array.from({ length: 100 }, (_, i) => `/p${i}`)
  const crawl = new Script({
    seeds: [root],
    answer: ({ path }) => (path === '/robots.txt' ? none : page(...paths)),
  })
  for (const atMs of [1500, 20_300, 31_000]) {
    crawl.advance(atMs)
    crawl.driver.restart(undefined, { wipeStores: atMs > 30_000 })
  }
  crawl.run({ maxMs: hourMs })
  assert.deepEqual(crawl.counts(), { 'known/ok': 101 })
  const asked = crawl.asked()
  assert.equal(new Set(asked).size, 101)
  // Each restart costs the request under way and what the fetcher had not told yet.
  assert.ok(asked.length <= 104, `${asked.length} requests`)
  const { length } = recordsOf(crawl.records, 'canonicalized')
  // Each of four tasks has a cache, which begins empty and lets each link through once.
  assert.ok(length <= 101 * 4 * 2, `${length} candidates of 10,100 links`)
})
