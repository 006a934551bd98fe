import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { json, type Site, serve, starSite, startWeir, temporary, until, weir } from './weir.ts'

const fast = ['--allow-private', '--delay-ms', '0', '--patience-s', '1']
const big = 'x'.repeat(3_000_000)

/** One URL of each fate. */
const fates: Site = (path) => {
  switch (path) {
    case '/robots.txt':
      return { headers: { 'content-type': 'text/plain' }, body: 'User-agent: *\nDisallow: /private/\n' }
    case '/':
      return '<title>Home</title><p>Words of home.</p><a href="/old">1</a><a href="/none">2</a><a href="/private/x">3</a><a href="http://other.example/">4</a><a href="/deep">5</a><a href="/big">6</a>'
    case '/old':
      return { status: 301, headers: { location: '/big' } }
    case '/deep':
      return '<a href="/deeper">deeper</a>'
    case '/big':
      return `<p>${big}`
    default:
      return undefined
  }
}

test('a crawl, and what status, explain and get say of it', async (t) => {
  const { origin, paths } = await serve(t, fates)
  const data = join(temporary(t), 'data')
  const crawled = await weir(t, ['crawl', `${origin}/`, '--data', data, '--max-depth', '1', '--json', ...fast])
  assert.equal(crawled.code, 0, crawled.stderr)
  assert.equal(crawled.stderr, '')
  const [report, ...more] = json(crawled.stdout)
  assert.equal(more.length, 0)
  assert.deepEqual(Object.keys(report!), ['crawl', 'pages', 'requests', 'states', 'parked', 'seconds'])
  const states = { 'known/ok': 3, 'known/redirect': 1, 'known/missing': 1, 'parked/robots': 1, 'parked/depth': 1 }
  assert.deepEqual([report!.pages, report!.requests, report!.states], [5, 6, states])
  assert.deepEqual(
    (report!.parked as { reason: string; count: number }[]).map((p) => [p.reason, p.count]),
    [
      ['depth', 1],
      ['robots', 1],
    ],
  )
  assert.equal(paths.length, 6)

  const ask = async (...args: string[]) => {
    const { code, stdout, stderr } = await weir(t, [...args, '--data', data])
    assert.deepEqual([code, stderr], [0, ''], args.join(' '))
    return stdout
  }
  // In parallel: readers of one directory wait for each other.
  const [status, ok, redirect, missing, robots, scope, depth, never, host, body] = await Promise.all([
    ask('status', '--json'),
    ask('explain', `${origin}/`, '--json'),
    ask('explain', `${origin}/old`),
    ask('explain', `${origin}/none`),
    ask('explain', `${origin}/private/x`),
    ask('explain', 'http://other.example/'),
    ask('explain', `${origin}/deeper`),
    ask('explain', `${origin}/never`),
    ask('explain', new URL(origin).host),
    ask('get', `${origin}/big`),
  ])
  assert.deepEqual(json(status), [
    { crawl: 'weir', running: false, states, inFlight: 0, pagesPerSec: 0, hosts: 1, lag: 0 },
  ])
  const [explained] = json(ok)
  assert.deepEqual(Object.keys(explained!), ['url', 'key', 'state', 'reason', 'since', 'next', 'evidence', 'history'])
  assert.deepEqual([explained!.state, explained!.reason], ['known', 'ok'])
  const [first] = explained!.history as { [name: string]: unknown }[]
  assert.deepEqual(Object.keys(first!), ['at', 'what', 'fetchId', 'status'])
  assert.equal(first!.status, 200)
  assert.match(
    redirect,
    /is known \(redirect\) since .*Z: it leads to another URL\n {2}because: the server answered 301 to http:.*\/big\n/,
  )
  assert.match(
    missing,
    /is known \(missing\) .*: the server does not have it\n {2}because: the server answered 404\n {2}next: asked for again at /,
  )
  assert.match(
    robots,
    /is parked \(robots\) .*: robots.txt forbids it\n {2}because: robots.txt [0-9a-f]+ line 2: Disallow: \/private\//,
  )
  assert.match(
    scope,
    /is refused \(out-of-scope\): the scope leaves it out\n {2}because: scope is host: other.example is not listed/,
  )
  assert.match(depth, /is parked \(depth\) .*\n {2}because: depth 2, at most 1\n/)
  assert.match(never, /is unknown \(not-discovered\): this crawl has not met it\n/)
  assert.match(host, /^127\.0\.0\.1\n(.*\n)* {2}5 pages answered, .*\n {2}http:.*: robots.txt is known until /)
  assert.equal(body, `<p>${big}`, 'a body is written whole to a pipe')

  const [text, links, headers, whole] = await Promise.all([
    ask('get', `${origin}/`, '--text'),
    ask('get', `${origin}/`, '--links'),
    ask('get', `${origin}/`, '--headers'),
    ask('get', `${origin}/`, '--json'),
  ])
  assert.match(text, /^Home\n\nWords of home\./)
  assert.equal(links.split('\n')[0], `${origin}/old`)
  assert.match(headers, /^HTTP 200\ncontent-type: text\/html\n/i)
  assert.equal(Buffer.from(String(json(whole)[0]!.bodyBase64), 'base64').toString(), fates('/'))
  const unstored = await weir(t, ['get', `${origin}/never`, '--data', data])
  assert.deepEqual([unstored.code, unstored.stdout], [1, ''])
  assert.match(unstored.stderr, /^weir: looking up http:.*\/never: no response of it is stored/)
})

test('while it runs it is asked; Ctrl-C drains it; the same command goes on to the end', async (t) => {
  const pages = starSite(30)
  let release = () => {}
  const gate = new Promise<void>((open) => {
    release = open
  })
  let answered = 0
  const { origin, paths } = await serve(t, (path) =>
    answered++ < 5 ? pages(path) : { body: pages(path) ?? '', after: gate },
  )
  const data = join(temporary(t), 'data')
  const command = ['crawl', `${origin}/`, '--data', data, '--json', ...fast]
  const running = startWeir(t, command)
  await until('a request waits at the server', () => paths.length === 6)
  const ask = (...args: string[]) => weir(t, [...args, '--data', data])
  const [status, plain, explained, body, letters, second] = await Promise.all([
    ask('status', '--json'),
    ask('status'),
    ask('explain', `${origin}/`, '--json'),
    ask('get', `${origin}/`, '--text'),
    ask('dead-letters', 'list'),
    ask('crawl', `${origin}/`, '--allow-private'),
  ])
  assert.equal(json(status.stdout)[0]!.running, true, status.stderr)
  assert.match(plain.stdout, /^crawl weir: running, /)
  assert.equal(json(explained.stdout)[0]!.reason, 'ok')
  assert.match(body.stdout, /^Start\n/)
  assert.deepEqual([letters.code, letters.stdout, letters.stderr], [0, '', 'no dead letters\n'])
  assert.equal(second.code, 3)
  assert.match(second.stderr, /another weir process is using it \(process \d+\)/)

  running.kill('SIGINT')
  await until('it says that it stops', () => running.stderr().includes('stopping: '))
  release()
  const { code, stdout } = await running.ended
  assert.equal(code, 130)
  const requests = paths.length
  const [report] = json(stdout)
  assert.equal(report!.requests, requests, 'what was under way has ended and is counted')
  const states = report!.states as { [state: string]: number }
  assert.deepEqual(states, { 'known/ok': 5, 'queued/none': 25 })
  const after = await ask('status', '--json')
  assert.deepEqual(json(after.stdout)[0]!.states, states, 'nothing is left with a fetcher')
  assert.equal(existsSync(join(data, 'control.json')), false)

  const rest = await weir(t, command)
  assert.equal(rest.code, 0, rest.stderr)
  assert.deepEqual(json(rest.stdout)[0]!.states, { 'known/ok': 30 })
  assert.deepEqual([...new Set(paths)].sort(), [...paths].sort(), 'nothing was asked for twice')
})

test('a second Ctrl-C leaves at once, and the next run finishes', async (t) => {
  const pages = starSite(3)
  const never = new Promise<void>(() => {})
  let isHung = true
  const { origin, paths } = await serve(t, (path) =>
    isHung && path === '/' ? { body: '', after: never } : pages(path),
  )
  const data = join(temporary(t), 'data')
  const command = ['crawl', `${origin}/`, '--data', data, '--json', ...fast]
  const running = startWeir(t, command)
  await until('a page is asked for', () => paths.includes('/'))
  running.kill('SIGINT')
  await until('it says that it stops', () => running.stderr().includes('stopping: '))
  running.kill('SIGINT')
  const { code, stdout } = await running.ended
  assert.deepEqual([code, stdout], [130, ''])
  isHung = false
  const rest = await weir(t, command)
  assert.equal(rest.code, 0, rest.stderr)
  assert.equal((json(rest.stdout)[0]!.states as { [state: string]: number })['known/ok'], 3)
})

test('--max-pages is exact over many hosts, and raising it goes on', async (t) => {
  const pages = starSite(6)
  const { origin, paths } = await serve(t, pages)
  const { port } = new URL(origin)
  const data = join(temporary(t), 'data')
  const seeds = Array.from({ length: 10 }, (_, i) => `http://h${i}.localhost:${port}/`)
  const run = async (...limit: string[]) => {
    const { code, stdout, stderr } = await weir(t, ['crawl', ...seeds, '--data', data, '--json', ...fast, ...limit])
    assert.equal(code, 0, stderr)
    return json(stdout)[0]!
  }
  const asked = () => paths.filter((path) => path !== '/robots.txt').length
  const first = await run('--max-pages', '13')
  assert.deepEqual([first.pages, asked()], [13, 13])
  const again = await run('--max-pages', '13')
  assert.deepEqual([again.pages, asked()], [13, 13])
  const more = await run('--max-pages', '31')
  assert.deepEqual([more.pages, asked()], [31, 31])
  const all = await run()
  assert.deepEqual([all.pages, asked(), all.states], [60, 60, { 'known/ok': 60 }])
})

test('--duration-s ends a crawl with everything kept', async (t) => {
  const { origin } = await serve(t, starSite(50))
  const data = join(temporary(t), 'data')
  const args = ['crawl', `${origin}/`, '--data', data, '--allow-private', '--delay-ms', '300', '--duration-s', '1']
  const { code, stdout } = await weir(t, args)
  assert.equal(code, 0)
  assert.match(stdout, /\ntime is up: \d pages? with \d requests in \d+\.\d s; data in .*; the same command goes on\n$/)
  assert.match(stdout, / {2}queued +[1-9]\d\n/)
})

test('an unreachable host is parked and printed when patience is over', async (t) => {
  const { origin } = await serve(t, starSite(1))
  const data = join(temporary(t), 'data')
  const args = ['crawl', 'http://127.0.0.1:1/', `${origin}/`, '--data', data, ...fast]
  const { code, stdout, stderr } = await weir(t, args)
  assert.deepEqual([code, stderr], [0, ''])
  assert.match(
    stdout,
    /1 URL parked: robots-unreachable, looked at again in (1 min|\d+ s) \(127\.0\.0\.1: refused: .*\)\n/,
  )
  const explained = await weir(t, ['explain', 'http://127.0.0.1:1/', '--data', data])
  assert.match(explained.stdout, /is parked \(robots-unreachable\) .*\n {2}because: refused: .*127\.0\.0\.1/)
})

test('a host in back-off is explained, and its pages with it', async (t) => {
  const { origin } = await serve(t, (path) =>
    path === '/' ? { status: 503, headers: { 'retry-after': '600' } } : undefined,
  )
  const data = join(temporary(t), 'data')
  await weir(t, ['crawl', `${origin}/`, '--data', data, ...fast])
  const [page, host] = await Promise.all([
    weir(t, ['explain', `${origin}/`, '--data', data]),
    weir(t, ['explain', '127.0.0.1', '--data', data]),
  ])
  assert.match(
    page.stdout,
    /is parked \(back-off\) .*: its host is left alone for a while\n {2}because: .*503.*\n {2}next: looked at again at .*Z \(in (10|9) min\)/,
  )
  assert.match(
    host.stdout,
    /^127\.0\.0\.1\n {2}is parked \(back-off\) since .*503.*\n {2}next: looked at again at .*\(in (10|9) min\)\n/,
  )
})
