import assert from 'node:assert/strict'
import { test } from 'node:test'
import { recordsOf } from './audit.ts'
import { type Answer, type Ask, html, page, redirect, Script } from './scripted.ts'

const root = 'http://a.test/'
const site = (pages: { [path: string]: Answer }) => (ask: Ask) => pages[ask.path] ?? null
const escapeHtml = (text: string): string => text.replaceAll('&', '&amp;')

test('U7: a page that links itself with a doubly escaped ampersand converges', () => {
  const crawl = new Script({
    seeds: [root],
    answer: ({ path }) => (path === '/robots.txt' ? null : html('<a href="?a=1&amp;amp;b=2">again</a>')),
  })
  crawl.run()
  assert.equal(Object.keys(crawl.states()).length, 2)
})

test('U7: a page that echoes its own query, rightly escaped, converges', () => {
  const crawl = new Script({
    seeds: ['http://a.test/?a=1&b=%26amp;&c=%2526'],
    answer: ({ path }) => (path === '/robots.txt' ? null : html(`<a href="${escapeHtml(path)}">itself</a>`)),
  })
  crawl.run()
  assert.equal(Object.keys(crawl.states()).length, 1)
})

test('L1: a relative base is resolved against the page, and the first one counts', () => {
  const crawl = new Script({
    seeds: ['http://a.test/x/y'],
    answer: site({
      '/x/y': html('<a href="a">before</a><base href="../z/"><base href="/no/"><a href="b">after</a>'),
      '/z/a': page(),
      '/z/b': page(),
    }),
  })
  crawl.run()
  assert.deepEqual(crawl.asked().sort(), ['http://a.test/x/y', 'http://a.test/z/a', 'http://a.test/z/b'])
})

test('L3: nofollow of a link, of a meta element, of a header, in whatever case', () => {
  const crawl = new Script({
    seeds: [root, 'http://a.test/meta', 'http://a.test/header', 'http://a.test/other'],
    answer: site({
      '/': html('<a rel="noopener NOFOLLOW" href="/1">no</a><a href="/2">yes</a>'),
      '/2': page(),
      '/meta': html('<META NAME="ROBOTS" CONTENT="None"><a href="/3">no</a>'),
      '/header': html('<a href="/4">no</a>', { 'x-robots-tag': 'weir: noindex, nofollow' }),
      '/other': html('<a href="/5">yes</a>', { 'x-robots-tag': 'otherbot: nofollow' }),
      '/5': page(),
    }),
  })
  crawl.run()
  for (const path of ['/1', '/3', '/4']) assert.equal(crawl.state(`http://a.test${path}`), undefined, path)
  for (const path of ['/2', '/5']) assert.equal(crawl.state(`http://a.test${path}`), 'known/ok', path)
  assert.ok(crawl.decisions('http://a.test/meta').includes('canonicalize:nofollow'))
})

test('L4: a canonical link and a redirect that lead to each other lose no page', () => {
  const crawl = new Script({
    seeds: ['http://a.test/p'],
    answer: site({ '/p': html('<link rel="canonical" href="/q"><p>The page.'), '/q': redirect('/p') }),
  })
  crawl.run()
  assert.deepEqual(crawl.states(), { 'http://a.test/p': 'known/ok', 'http://a.test/q': 'known/redirect' })
  assert.equal(crawl.times('http://a.test/p'), 1)
})

test('L4: of two canonical links that differ none counts', () => {
  const crawl = new Script({
    seeds: ['http://a.test/p'],
    answer: site({ '/p': html('<link rel="canonical" href="/q"><link rel="canonical" href="/r"><p>The page.') }),
  })
  crawl.run()
  assert.equal(crawl.state('http://a.test/p'), 'known/ok')
  assert.equal(recordsOf(crawl.records, 'parsed')[0]!.value.canonicalUrl, null)
})

test('T1: links that grow for ever end at the greatest depth', () => {
  for (const href of ['a/', 'www.x.com', './b/../c/', '?n']) {
    const crawl = new Script({
      seeds: [root],
      schedule: { maxDepth: 6 },
      answer: ({ path }) => {
        if (path === '/robots.txt') return null
        return html(`<a href="${href === '?n' ? `?n=${path.length}${path.replaceAll(/\D/g, '')}` : href}">on</a>`)
      },
    })
    crawl.run()
    const { 'known/ok': ok = 0, 'parked/depth': deep = 0 } = crawl.counts()
    assert.ok(ok <= 7 && deep <= 1, `${href}: ${ok} fetched, ${deep} parked`)
    if (href === 'a/') assert.deepEqual({ ok, deep }, { ok: 7, deep: 1 })
  }
})

test('E1: every link of a page is in one of the counts', () => {
  const hrefs = [
    '/in', // admitted
    '/in#part', // the same page: another href
    'http://b.test/', // out of scope
    'http://a.test:81/', // a port of no seed
    'mailto:x@a.test',
    'javascript:void(0)',
    'http://[bad/',
    `/${'x'.repeat(3000)}`,
    '/',
    'ftp://a.test/',
    '//a.test/in?utm_source=x',
  ]
  const crawl = new Script({ seeds: [root], answer: site({ '/': page(...hrefs), '/in': page('/in', '/') }) })
  crawl.run()
  const [decision] = recordsOf(crawl.records, 'decisions').filter(
    ({ key, value }) => key === root && value.processor === 'canonicalize',
  )
  const counts = Object.fromEntries(decision!.value.reasons.map(({ code, count }) => [code, count]))
  assert.equal(decision!.value.total, hrefs.length)
  assert.equal(counts['out-of-scope'], 1)
  assert.equal(counts.port, 1)
  assert.equal(counts.scheme, 3)
  assert.equal(counts.syntax, 1)
  assert.equal(counts['too-long'], 1)
  assert.equal((counts.admitted ?? 0) + (counts['repeat-cache'] ?? 0), 4)
  assert.deepEqual(crawl.states(), { [root]: 'known/ok', 'http://a.test/in': 'known/ok' })
})

test('a page of 1,000 links, and one of 6,000: what is over the bound is counted', () => {
  const many = (n: number) => page(...Array.from({ length: n }, (_, i) => `/n${i}`))
  for (const [n, kept] of [
    [1000, 1000],
    [6000, 5000],
  ] as const) {
    const crawl = new Script({
      seeds: [root],
      schedule: { maxDepth: 0 },
      answer: site({ '/': many(n) }),
    })
    crawl.run()
    assert.deepEqual(crawl.counts(), { 'known/ok': 1, 'parked/depth': kept })
    const [source] = recordsOf(crawl.records, 'discovered-urls').filter(({ key }) => key === root)
    assert.deepEqual([source!.value.linkCount, source!.value.excessCount], [kept, n - kept])
    const [decision] = recordsOf(crawl.records, 'decisions').filter(
      ({ key, value }) => key === root && value.processor === 'canonicalize',
    )
    assert.equal(decision!.value.evidence, n === kept ? null : '1000 links over the bound were not kept')
  }
})

test('bodies that are none: empty, 204, 206, a type that is not wanted', () => {
  const crawl = new Script({
    seeds: ['/empty', '/204', '/206', '/zip', '/205', '/299'].map((path) => `http://a.test${path}`),
    answer: site({
      '/empty': html(''),
      '/204': { status: 204 },
      '/205': { status: 205 },
      '/206': {
        status: 206,
        headers: { 'content-type': 'text/html', 'content-range': 'bytes 0-3/9' },
        body: '<a href=/q>',
      },
      '/299': { status: 299, body: 'odd' },
      '/zip': { headers: { 'content-type': 'application/zip' }, body: '<a href="/q">PK' },
    }),
  })
  crawl.run()
  assert.deepEqual(crawl.counts(), { 'known/ok': 6 })
  const zip = recordsOf(crawl.records, 'fetched').find(({ key }) => key === 'http://a.test/zip')!
  assert.equal(zip.value.truncated, 'type')
})

test('a page over the cap is cut, kept and read as far as it goes', () => {
  const big = html(`<a href="/first">1</a>${'<p>words of a page</p>'.repeat(1_000_000)}<a href="/last">2</a>`)
  const crawl = new Script({ seeds: [root], answer: site({ '/': big, '/first': page() }) })
  crawl.run()
  assert.deepEqual(crawl.states(), { [root]: 'known/ok', 'http://a.test/first': 'known/ok' })
  const fetched = recordsOf(crawl.records, 'fetched').find(({ key }) => key === root)!
  assert.equal(fetched.value.truncated, 'length')
  assert.equal(fetched.value.bodyBytes, 10 * 1024 * 1024)
})
