import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { recordsOf } from './audit.ts'
import {
  assertPolite,
  crawlSites,
  html,
  links,
  open,
  readCrawl,
  settingsFor,
  startSites,
  temporaryDirectory,
} from './sockets.ts'

test('a seed that redirects to another host: its links are crawled, a rule and a notice say why', async (t) => {
  const sites = await startSites(t, ({ host, path, res }) => {
    if (host === 'a.localhost') res.writeHead(301, { location: sites.url('www.a.localhost') }).end()
    else html(res, path === '/' ? links('/x', '/y', sites.url('b.localhost')) : links('/'))
  })
  const { states, notices, records, report } = await crawlSites(settingsFor(temporaryDirectory(t)), [
    sites.url('a.localhost'),
  ])
  assert.deepEqual(report.states, { 'known/ok': 3, 'known/redirect': 1 })
  assert.equal(states.get(sites.url('a.localhost')), 'known/redirect')
  assert.ok(!sites.log.some(({ host }) => host === 'b.localhost'))
  assert.equal(recordsOf(records, 'controls').filter(({ key }) => key === 'scope-host:www.a.localhost').length, 4)
  assert.deepEqual(
    notices.filter((text) => text.includes('www.a.localhost')),
    [`www.a.localhost joins the scope: redirect of seed ${sites.url('a.localhost')}`],
  )
})

test('B1, C1: bodies that are not what they seem', async (t) => {
  const bomb = gzipSync(Buffer.alloc(200 * 1024 * 1024, '<p>zeros '), { level: 1 })
  const russian =
    '<meta charset="windows-1251"><title>\u041f\u0440\u0438\u0432\u0435\u0442</title><a href="/after-1251">'
  const sites = await startSites(t, ({ path, res }) => {
    switch (path) {
      case '/':
        return html(res, links('/bomb', '/thrice', '/1251', '/bom', '/liar', '/zip', '/unknown'))
      case '/bomb':
        return html(res, bomb, { 'content-encoding': 'gzip' })
      case '/thrice':
        return html(res, gzipSync(gzipSync(gzipSync('<a href="/no">'))), { 'content-encoding': 'gzip, gzip, gzip' })
      case '/1251':
        return html(res, latin(russian))
      case '/bom':
        return html(res, Buffer.from('\ufeff<title>gr\u00fcn</title>'), {
          'content-type': 'text/html; charset=iso-8859-1',
        })
      case '/liar':
        return html(res, '<a href="/no">this is no gzip', { 'content-encoding': 'gzip' })
      case '/zip':
        return html(res, '<a href="/no">', { 'content-type': 'application/zip' })
      case '/unknown':
        return html(res, '<a href="/no">', { 'content-encoding': 'x-secret' })
      default:
        html(res, links())
    }
  })
  const before = process.memoryUsage.rss()
  const { states, records } = await crawlSites(settingsFor(temporaryDirectory(t)), [sites.url('a.localhost')])
  assert.ok(process.memoryUsage.rss() - before < 400e6, 'the bomb was not blown up')
  const fetched = new Map(recordsOf(records, 'fetched').map(({ key, value }) => [new URL(key).pathname, value]))
  assert.equal(fetched.get('/bomb')!.truncated, 'length')
  assert.equal(fetched.get('/bomb')!.bodyBytes, 10 * 1024 * 1024)
  assert.equal(fetched.get('/zip')!.truncated, 'type')
  const titles = new Map(recordsOf(records, 'parsed').map(({ key, value }) => [new URL(key).pathname, value.title]))
  assert.equal(titles.get('/1251'), '\u041f\u0440\u0438\u0432\u0435\u0442')
  assert.equal(titles.get('/bom'), 'gr\u00fcn')
  assert.equal(states.get(sites.url('a.localhost', '/after-1251')), 'known/ok')
  assert.equal(states.get(sites.url('a.localhost', '/no')), undefined)
  assert.equal(states.size, 9)
})

test('B3: bodies that drip or never end are cut by the total deadline, and others of the host follow', async (t) => {
  const sites = await startSites(t, ({ path, res, socket }) => {
    if (path === '/') return html(res, links('/drip', '/radio', '/silent', '/ok'))
    if (path === '/ok') return html(res, links())
    if (path === '/silent') return
    res.writeHead(200, { 'content-type': 'text/html' })
    const timer = setInterval(() => res.write(path === '/drip' ? 'x' : 'x'.repeat(4096)), path === '/drip' ? 100 : 2)
    socket.on('close', () => clearInterval(timer))
  })
  const settings = settingsFor(temporaryDirectory(t), { requestTimeoutMs: 1000 })
  const { report, states, records } = await crawlSites(settings, [sites.url('a.localhost')])
  assert.equal(states.get(sites.url('a.localhost', '/ok')), 'known/ok')
  assert.deepEqual(report.states, { 'known/ok': 2, 'parked/back-off': 3 })
  assert.ok(report.seconds < 6, `${report.seconds} s`)
  const drip = recordsOf(records, 'fetched').find(({ key }) => key.endsWith('/drip'))!
  assert.equal(drip.value.truncated, 'time')
  assert.ok(drip.value.archive !== null, 'what came of it is kept')
  assertPolite(sites.log, 0)
})

test('servers of another age: HTTP/1.0, a close after each response, Latin-1 in headers, odd status lines', async (t) => {
  const head = 'Content-Type: text/html\r\n'
  const raw: { [path: string]: string } = {
    '/10': `HTTP/1.0 200 OK\r\n${head}\r\n${links('/after-10')}`,
    '/close': `HTTP/1.1 200 OK\r\n${head}Connection: close\r\n\r\n${links('/after-close')}`,
    '/latin1': `HTTP/1.1 200 Tr\u00e8s bien\r\nX-Name: Andr\u00e9\r\n${head}Connection: close\r\n\r\n${links('/after-latin1')}`,
    '/noreason': `HTTP/1.1 200\r\n${head}Connection: close\r\n\r\n${links('/after-noreason')}`,
    '/redirect': 'HTTP/1.1 302 Found\r\nLocation: /gr\u00fcn\r\nConnection: close\r\n\r\n',
    '/short': `HTTP/1.1 200 OK\r\n${head}Content-Length: 5000\r\n\r\n${links('/after-short')}`,
    '/garbage': 'this is no HTTP at all\r\n\r\n',
    '/huge-header': `HTTP/1.1 200 OK\r\nX-Big: ${'x'.repeat(300_000)}\r\n\r\n`,
    '/100': `HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\n${head}Connection: close\r\n\r\n${links('/after-100')}`,
  }
  const sites = await startSites(t, ({ path, res, socket }) => {
    if (path === '/') return html(res, links(...Object.keys(raw)))
    const answer = raw[path]
    if (answer === undefined) return html(res, links(), { connection: 'close' })
    socket.end(Buffer.from(answer, 'latin1'))
  })
  const { states } = await crawlSites(settingsFor(temporaryDirectory(t)), [sites.url('a.localhost')])
  const state = (path: string) => states.get(sites.url('a.localhost', path))
  for (const name of ['10', 'close', 'latin1', 'noreason', '100']) {
    assert.equal(state(`/${name}`), 'known/ok', name)
    assert.equal(state(`/after-${name}`), 'known/ok', `after-${name}`)
  }
  assert.equal(state('/gr%C3%BCn'), 'known/ok')
  for (const path of ['/short', '/garbage', '/huge-header']) assert.equal(state(path), 'parked/back-off', path)
  assertPolite(sites.log, 0)
})

test('P1: stopped in the middle and opened again: every page once, nothing lost', async (t) => {
  const paths = Array.from({ length: 60 }, (_, i) => `/p${i}`)
  const sites = await startSites(t, ({ path, res }) => {
    setTimeout(() => html(res, path === '/' ? links(...paths) : links('/')), path === '/' ? 0 : 8)
  })
  const seeds = ['a.localhost', 'b.localhost'].map((host) => sites.url(host))
  const settings = settingsFor(temporaryDirectory(t))
  for (let round = 0; round < 3; round++) {
    const { crawl } = await open(settings, round === 0 ? seeds : [])
    const goal = 20 * (round + 1)
    await until(() => sites.paths().length >= goal)
    crawl.stop('interrupted')
    const report = await crawl.finished
    assert.equal(report.ended, 'interrupted')
    assert.equal(
      Object.values(report.states).reduce((a, b) => a + b),
      122 - (report.states['known/ok'] === 0 ? 122 : 0),
    )
    assert.equal(report.states['leased/none'], undefined)
    await readCrawl(settings.data, report)
  }
  const { report } = await crawlSites(settings, [])
  assert.deepEqual(report.states, { 'known/ok': 122 })
  assert.equal(sites.paths().length, 122, 'no page was asked for twice')
  assertPolite(sites.log, 0)
})

test('opened again with a greater depth and budget: what was parked goes on', async (t) => {
  const sites = await startSites(t, ({ path, res }) => {
    const depth = path.length - 1
    html(res, links(`${path}l`, `${path}r`), depth === 0 ? {} : { etag: `"${path}"` })
  })
  const data = temporaryDirectory(t)
  const seed = [sites.url('a.localhost')]
  const first = await crawlSites(settingsFor(data, { maxDepth: 2 }), seed)
  assert.deepEqual(first.report.states, { 'known/ok': 7, 'parked/depth': 8 })
  assert.deepEqual(
    first.report.parked.map(({ reason, count, next }) => ({ reason, count, next })),
    [{ reason: 'depth', count: 8, next: null }],
  )
  const second = await crawlSites(settingsFor(data, { maxDepth: 3 }), [])
  assert.deepEqual(second.report.states, { 'known/ok': 15, 'parked/depth': 16 })
  const third = await crawlSites(settingsFor(data, { maxDepth: 4, maxPagesPerHost: 20 }), [])
  assert.equal(third.report.states['known/ok'], 20)
  assert.equal(third.report.states['parked/budget'], 11)
  const fourth = await crawlSites(settingsFor(data, { maxDepth: 4, maxPagesPerHost: 25, maxPages: 23 }), [])
  assert.equal(fourth.report.states['known/ok'], 23)
  const fifth = await crawlSites(settingsFor(data, { maxDepth: 4 }), seed)
  assert.deepEqual(fifth.report.states, { 'known/ok': 31, 'parked/depth': 32 })
  assert.equal(new Set(sites.paths()).size, sites.paths().length, 'no page was asked for twice')
})

test('another seed on the same directory widens the scope, and links refused before are admitted', async (t) => {
  const sites = await startSites(t, ({ path, res }) =>
    html(res, path === '/' ? links(sites.url('b.localhost', '/from-a'), '/x') : links()),
  )
  const settings = settingsFor(temporaryDirectory(t))
  const first = await crawlSites(settings, [sites.url('a.localhost')])
  assert.deepEqual(first.report.states, { 'known/ok': 2 })
  const second = await crawlSites(settings, [sites.url('b.localhost', '/y')])
  assert.deepEqual(second.report.states, { 'known/ok': 4 })
  assert.equal(second.states.get(sites.url('b.localhost', '/from-a')), 'known/ok')
})

test('a delay is kept, also across a stop and a start', async (t) => {
  const sites = await startSites(t, ({ path, res }) => html(res, path === '/' ? links('/a', '/b', '/c') : links()))
  const settings = settingsFor(temporaryDirectory(t), { delayMs: 150 })
  const { crawl } = await open(settings, [sites.url('a.localhost')])
  await until(() => sites.paths().length >= 2)
  crawl.stop('interrupted')
  await crawl.finished
  const { report } = await crawlSites(settings, [])
  assert.deepEqual(report.states, { 'known/ok': 4 })
  assertPolite(sites.log, 150)
})

async function until(isSo: () => boolean): Promise<void> {
  const untilMs = performance.now() + 10_000
  while (!isSo()) {
    assert.ok(performance.now() < untilMs, `waited in vain for ${isSo}`)
    await new Promise((done) => setTimeout(done, 2))
  }
}

function latin(text: string): Buffer {
  const bytes = Buffer.alloc(text.length)
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    bytes[i] = code < 0x80 ? code : code - 0x350
  }
  return bytes
}
