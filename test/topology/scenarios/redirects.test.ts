import assert from 'node:assert/strict'
import { test } from 'node:test'
import { recordsOf } from './audit.ts'
import { type Answer, type Ask, dayMs, minuteMs, page, redirect, robots, Script } from './scripted.ts'

const root = 'http://a.test:8080/'
const www = 'http://www.a.test:8080/'

test('a seed that redirects to another host widens the scope, and links refused before are admitted then', () => {
  const crawl = new Script({
    seeds: ['http://b.test:8080/', root],
    answer: ({ host, path }) => {
      if (path === '/robots.txt') return host === 'a.test:8080' ? { status: 404, takesMs: 5000 } : null
      if (host === 'b.test:8080') return page('http://www.a.test:8080/early', 'http://c.test:8080/')
      if (host === 'a.test:8080') return redirect(www)
      return path === '/' ? page('/x') : page()
    },
  })
  crawl.advance(3000)
  const refused = recordsOf(crawl.records, 'decisions').filter(
    ({ key, value }) => key === 'http://b.test:8080/' && value.processor === 'canonicalize',
  )
  assert.deepEqual(
    refused[0]?.value.reasons.map(({ code, count }) => [code, count]),
    [['out-of-scope', 2]],
  )
  crawl.run()
  assert.deepEqual(crawl.states(), {
    [root]: 'known/redirect',
    'http://b.test:8080/': 'known/ok',
    [www]: 'known/ok',
    [`${www}early`]: 'known/ok',
    [`${www}x`]: 'known/ok',
  })
  assert.equal(crawl.times(`${www}early`), 1)
  assert.equal(crawl.state('http://c.test:8080/'), undefined)
  const rules = recordsOf(crawl.records, 'controls').filter(({ key }) => key === 'scope-host:www.a.test')
  assert.deepEqual([...new Set(rules.map(({ partition }) => partition))], [0, 1, 2, 3])
  assert.equal(rules[0]!.value.why, `redirect of seed ${root}`)
  assert.deepEqual(rules[0]!.value.ports, [8080])
})

test('a page that is no seed widens nothing by redirecting', () => {
  const crawl = new Script({
    seeds: [root],
    answer: ({ host, path }) => {
      if (path === '/robots.txt') return null
      return host === 'a.test:8080' && path === '/' ? page('/go') : redirect('http://b.test:8080/')
    },
  })
  crawl.run()
  assert.deepEqual(crawl.states(), { [root]: 'known/ok', [`${root}go`]: 'known/redirect' })
})

for (const scope of ['host', 'domain', 'any'] as const) {
  test(`--scope ${scope}: hosts and ports`, () => {
    const crawl = new Script({
      seeds: [root],
      scope,
      answer: ({ host, path }) => {
        if (path === '/robots.txt') return null
        if (host !== 'a.test:8080' || path !== '/') return page()
        return page(
          'http://sub.a.test:8080/',
          'http://sub.a.test/',
          'https://sub.a.test/',
          'http://sub.a.test:9090/',
          'http://b.test/',
          'http://b.test:9090/',
          'http://a.test/',
          'http://a.test:9090/',
          '/in',
        )
      },
    })
    crawl.run()
    const own = [root, `${root}in`, 'http://a.test/']
    const domain = ['http://sub.a.test:8080/', 'http://sub.a.test/', 'https://sub.a.test/']
    const expected = { host: own, domain: [...own, ...domain], any: [...own, ...domain, 'http://b.test/'] }[scope]
    assert.deepEqual(Object.keys(crawl.states()).sort(), expected.sort())
    assert.deepEqual(crawl.counts(), { 'known/ok': expected.length })
  })
}

test('D1: a redirect to itself that sets a cookie neither loops nor vanishes', () => {
  const crawl = new Script({
    seeds: [root],
    punctuateMs: minuteMs,
    schedule: { recrawlMs: 2 * dayMs },
    answer: ({ path }) => {
      if (path === '/robots.txt') return null
      return path === '/' ? page('/a') : { status: 302, headers: { location: '/a', 'set-cookie': 's=1' } }
    },
  })
  crawl.run()
  assert.equal(crawl.state(`${root}a`), 'known/redirect')
  assert.equal(crawl.times(`${root}a`), 1)
  assert.ok(crawl.decisions(`${root}a`).includes('parse:redirect-to-self'))
  crawl.advance(3 * dayMs)
  assert.equal(crawl.times(`${root}a`), 2, 'it is asked again when its time comes')
})

test('D2: a redirect out of the scope is refused, and its outcome is that of the URL which was asked', () => {
  const crawl = new Script({
    seeds: [root],
    answer: ({ path }) => {
      if (path === '/robots.txt') return robots('User-agent: *', 'Disallow: /private')
      if (path === '/') return page('/out', '/in')
      return redirect(path === '/out' ? 'http://evil.test:8080/x' : '/private/page')
    },
  })
  crawl.run()
  assert.deepEqual(crawl.states(), {
    [root]: 'known/ok',
    [`${root}in`]: 'known/redirect',
    [`${root}out`]: 'known/redirect',
    [`${root}private/page`]: 'parked/robots',
  })
  assert.ok(crawl.asked({ robots: true }).every((url) => url.startsWith(root)))
  assert.ok(crawl.decisions(`${root}out`).includes('canonicalize:out-of-scope'))
  const outcome = recordsOf(crawl.records, 'fetched').find(({ key }) => key === `${root}out`)!
  assert.equal(outcome.value.location, 'http://evil.test:8080/x')
})

test('a loop of redirects is walked once', () => {
  const next: { [path: string]: string } = { '/': '/a', '/a': '/b', '/b': '/c', '/c': '/a' }
  const crawl = new Script({
    seeds: [root],
    answer: ({ path }) => (next[path] === undefined ? null : redirect(next[path])),
  })
  crawl.run()
  assert.deepEqual(crawl.counts(), { 'known/redirect': 4 })
  assert.equal(crawl.asked().length, 4)
})

test('a chain of 20 redirects is followed to its end', () => {
  const crawl = new Script({
    seeds: [`${root}0`],
    answer: ({ path }): Answer | null => {
      const n = Number(path.slice(1))
      if (Number.isNaN(n)) return null
      return n < 20 ? redirect(`/${n + 1}`, [301, 302, 303, 307, 308][n % 5]) : page()
    },
  })
  crawl.run()
  assert.deepEqual(crawl.counts(), { 'known/redirect': 20, 'known/ok': 1 })
})

test('redirects that lead to no page: another scheme, no URL, nothing, 300, 304 unasked', () => {
  const answers: { [path: string]: Answer } = {
    '/mailto': redirect('mailto:someone@a.test'),
    '/js': redirect('javascript:alert(1)'),
    '/bad': redirect('http://[::1'),
    '/none': { status: 302 },
    '/long': redirect(`/${'x'.repeat(9000)}`),
    '/300': { status: 300, headers: { location: '/x' } },
    '/304': { status: 304 },
    '/fragment': redirect('/fragment#part'),
    '/utf8': redirect(Buffer.from('/gr\u00fcn').toString('latin1')),
  }
  const crawl = new Script({
    seeds: Object.keys(answers).map((path) => root + path.slice(1)),
    answer: (ask: Ask) => answers[ask.path] ?? (ask.path === '/gr%C3%BCn' ? page() : null),
  })
  crawl.run()
  const state = (path: string) => crawl.state(root + path)
  assert.equal(state('mailto'), 'known/redirect')
  assert.ok(crawl.decisions(`${root}mailto`).includes('canonicalize:scheme'))
  assert.equal(state('js'), 'known/redirect')
  assert.equal(state('bad'), 'known/failed')
  assert.equal(state('none'), 'known/failed')
  assert.equal(state('300'), 'known/failed')
  assert.equal(state('fragment'), 'known/redirect')
  assert.ok(crawl.decisions(`${root}fragment`).includes('parse:redirect-to-self'))
  assert.equal(state('gr%C3%BCn'), 'known/ok')
  assert.ok(crawl.asked().every((url) => url.startsWith(root)))
})

test('a redirect chain without an end is left after 20 hops, with the reason', () => {
  const crawl = new Script({
    seeds: [root],
    answer: ({ path }) => {
      if (path === '/robots.txt') return null
      return path === '/' ? page('/hop?n=0') : redirect(`/hop?n=${Number(path.split('=')[1]) + 1}`)
    },
  })
  crawl.run()
  assert.equal(Object.keys(crawl.states()).length, 1 + 21)
  const left = recordsOf(crawl.records, 'decisions').filter(({ value }) =>
    value.reasons.some(({ code }) => code === 'redirect-chain'),
  )
  assert.deepEqual([...new Set(left.map(({ key }) => key))], [`${root}hop?n=20`])
})

test('a seed leads into other hosts for five redirects, not for ever', () => {
  const crawl = new Script({
    seeds: ['http://h0.test:8080/'],
    answer: ({ host, path }) => {
      if (path === '/robots.txt') return null
      return redirect(`http://h${Number(/\d+/.exec(host)![0]) + 1}.test:8080/`)
    },
  })
  crawl.run()
  assert.deepEqual(
    Object.keys(crawl.states()).sort(),
    [0, 1, 2, 3, 4, 5].map((n) => `http://h${n}.test:8080/`),
  )
})
