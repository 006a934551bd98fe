import assert from 'node:assert/strict'
import { test } from 'node:test'
import { recordsOf } from './audit.ts'
import { type Answer, type Ask, dayMs, hourMs, minuteMs, page, redirect, robots, Script } from './scripted.ts'

const root = 'http://a.test/'
const robotsUrl = 'http://a.test/robots.txt'
const site =
  (robotsAnswer: (ask: Ask) => Answer | null, pages: { [path: string]: Answer } = { '/': page('/x'), '/x': page() }) =>
  (ask: Ask): Answer | null =>
    ask.path === '/robots.txt' ? robotsAnswer(ask) : (pages[ask.path] ?? null)

for (const [what, broken] of [
  ['503 with a page', { status: 503, headers: { 'content-type': 'text/html' }, body: '<p>User-agent: *\nAllow: /' }],
  ['a reset connection', { error: 'reset' }],
  ['a body that breaks off', { body: 'User-agent: *', cut: { truncated: 'disconnect', error: 'reset' } }],
  ['a timeout', { error: 'headers-timeout', takesMs: 30_000 }],
] satisfies [string, Answer][]) {
  test(`R1: robots.txt gives ${what}: nothing is asked, the host waits, longer each time`, () => {
    const crawl = new Script({ seeds: [root], punctuateMs: minuteMs, answer: site(() => broken) })
    crawl.run({ patienceMs: 30 * minuteMs })
    assert.deepEqual(crawl.asked(), [])
    assert.deepEqual(crawl.counts(), { 'parked/robots-unreachable': 1 })
    const [parked] = crawl.parked()
    assert.ok(parked!.next !== null && parked!.next > crawl.clock.nowMs(), 'its next try is known')
    const starts = crawl.seen.map(({ startMs }) => startMs)
    assert.ok(starts.length >= 5 && starts.length <= 9, `${starts.length} tries`)
    const gaps = starts.slice(1).map((at, i) => at - starts[i]!)
    gaps.reduce((shorter, gap) => {
      assert.ok(gap > 1.5 * shorter || gap >= hourMs, `gaps grow: ${gaps}`)
      return gap
    })
    // An hour is the longest wait: it is asked for ever.
    crawl.advance(2 * dayMs)
    assert.ok(crawl.times(robotsUrl) - starts.length >= 40)
    assert.deepEqual(crawl.asked(), [])
  })
}

test('R1: an old copy stays in force while robots.txt fails', () => {
  const crawl = new Script({
    seeds: [root],
    punctuateMs: minuteMs,
    schedule: { recrawlMs: 2 * dayMs },
    answer: site(({ nth }) => (nth === 1 ? robots('User-agent: *', 'Disallow: /no') : { status: 500 }), {
      '/': page('/x', '/no'),
      '/x': page(),
      '/no': page(),
    }),
  })
  crawl.run({ patienceMs: 3 * dayMs, maxMs: 10 * dayMs, stepMs: hourMs })
  assert.ok(crawl.times(root) >= 2, 'visited again under the old copy')
  assert.ok(crawl.times(robotsUrl) >= 2)
  assert.equal(crawl.times('http://a.test/no'), 0)
  assert.equal(crawl.state('http://a.test/no'), 'parked/robots')
})

test('R2: robots.txt answers 429 with Retry-After: waits as long, then asks, and the URL was never given up', () => {
  const crawl = new Script({
    seeds: [root],
    answer: site(({ nth }) => (nth === 1 ? { status: 429, headers: { 'retry-after': '120' } } : { status: 404 })),
  })
  crawl.advance(100_000)
  assert.deepEqual(crawl.counts(), { 'parked/robots-unreachable': 1 })
  crawl.run({ patienceMs: 10 * minuteMs })
  const [first, second] = crawl.seen
  assert.ok(second!.startMs - first!.endMs >= 120_000)
  assert.ok(second!.startMs - first!.endMs <= 130_000)
  assert.deepEqual(crawl.states(), { [root]: 'known/ok', 'http://a.test/x': 'known/ok' })
})

test('R3: an error of robots.txt is soon forgotten, and the rules that come then apply', () => {
  const crawl = new Script({
    seeds: [root],
    answer: site(({ nth }) => (nth === 1 ? { status: 503 } : robots('User-agent: *', 'Disallow: /x'))),
  })
  const tookMs = crawl.run()
  assert.ok(tookMs < 3 * minuteMs, `${tookMs} ms`)
  assert.deepEqual(crawl.states(), { [root]: 'known/ok', 'http://a.test/x': 'parked/robots' })
  assert.deepEqual(crawl.asked(), [root])
})

test('an empty robots.txt, and one of 410, allow everything', () => {
  for (const answer of [robots(''), { status: 410 }, { status: 403 }, { status: 204 }]) {
    const crawl = new Script({ seeds: [root], answer: site(() => answer) })
    crawl.run()
    assert.deepEqual(crawl.counts(), { 'known/ok': 2 }, JSON.stringify(answer))
  }
})

test('R13: each port has its own robots.txt', () => {
  const crawl = new Script({
    seeds: ['http://a.test:8080/', root, 'https://a.test/'],
    answer: ({ host, path }) => {
      if (path === '/robots.txt') return host === 'a.test:8080' ? robots('User-agent: *', 'Disallow: /x') : null
      return path === '/' ? page('/x') : page()
    },
  })
  crawl.run()
  assert.equal(crawl.times('http://a.test:8080/robots.txt'), 1)
  assert.equal(crawl.state('http://a.test:8080/x'), 'parked/robots')
  assert.equal(crawl.times('http://a.test:8080/x'), 0)
  assert.equal(crawl.state('http://a.test/x'), 'known/ok')
  assert.equal(crawl.state('https://a.test/x'), 'known/ok')
})

test('R13: robots.txt that redirects to another host parks the origin; within the host it is followed', () => {
  const elsewhere = new Script({
    seeds: [root],
    answer: site(() => redirect('http://b.test/robots.txt')),
  })
  elsewhere.run()
  assert.deepEqual(elsewhere.counts(), { 'parked/robots-unreachable': 1 })
  assert.equal(elsewhere.times('http://b.test/robots.txt'), 0)
  const within = new Script({
    seeds: [root],
    answer: (ask) => {
      if (ask.path === '/robots.txt') return redirect('/r1')
      if (ask.path === '/r1') return redirect('/r2')
      if (ask.path === '/r2') return robots('User-agent: weir', 'Disallow: /x')
      return ask.path === '/' ? page('/x') : page()
    },
  })
  within.run()
  assert.deepEqual(within.states(), { [root]: 'known/ok', 'http://a.test/x': 'parked/robots' })
})

test('R13: robots.txt that redirects for ever allows all after five hops', () => {
  const crawl = new Script({
    seeds: [root],
    answer: (ask) => {
      const hop = /^\/robots\.txt(\d*)$/.exec(ask.path)
      if (hop !== null) return redirect(`/robots.txt${Number(hop[1]) + 1}`)
      return page()
    },
  })
  crawl.run()
  assert.equal(crawl.seen.filter(({ url }) => url.includes('robots.txt')).length, 6)
  assert.deepEqual(crawl.counts(), { 'known/ok': 1 })
})

test('R14: a short crawl-delay does not lower the delay', () => {
  const crawl = new Script({
    seeds: [root],
    delayMs: 2000,
    answer: site(() => robots('User-agent: *', 'Crawl-delay: 0.1')),
  })
  crawl.run()
  assert.deepEqual(crawl.counts(), { 'known/ok': 2 })
})

test('R14: a crawl-delay of a day is obeyed and loses nothing', () => {
  const crawl = new Script({
    seeds: [root],
    punctuateMs: minuteMs,
    answer: site(() => robots('User-agent: *', 'Crawl-delay: 86400'), {
      '/': page('/x', '/y'),
      '/x': page(),
      '/y': page(),
    }),
    schedule: { recrawlMs: 30 * dayMs },
  })
  crawl.run({ patienceMs: 3 * dayMs, maxMs: 12 * dayMs, stepMs: hourMs })
  assert.deepEqual(crawl.counts(), { 'known/ok': 3 })
  const { seen } = crawl
  for (let i = 2; i < seen.length; i++) assert.ok(seen[i]!.startMs - seen[i - 1]!.endMs >= dayMs, seen[i]!.url)
})

test('R15: a page that robots.txt refuses from some day on is parked with the version, and comes back with the rules', () => {
  const crawl = new Script({
    seeds: [root],
    punctuateMs: minuteMs,
    schedule: { recrawlMs: 2 * dayMs, maxRecrawlMs: 2 * dayMs },
    answer: site(({ atMs }) => (atMs > dayMs && atMs < 10 * dayMs ? robots('User-agent: *', 'Disallow: /x') : null)),
  })
  crawl.run()
  assert.deepEqual(crawl.counts(), { 'known/ok': 2 })
  crawl.advance(5 * dayMs)
  assert.equal(crawl.state('http://a.test/x'), 'parked/robots')
  assert.equal(crawl.times('http://a.test/x'), 1)
  assert.ok(crawl.decisions('http://a.test/x').includes('schedule:robots'))
  const states = recordsOf(crawl.records, 'page-states').filter(({ key }) => key === 'http://a.test/x')
  assert.match(states.at(-1)!.value.evidence ?? '', /^robots\.txt [0-9a-f]{16} line 2/)
  assert.ok(states.at(-1)!.value.contentHash !== null, 'what was stored of it is still known')
  crawl.advance(10 * dayMs)
  assert.ok(crawl.times('http://a.test/x') >= 2, 'visited again once the rules let it be')
  crawl.audit()
})
