import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { scheduleStores } from '../../../processors/schedule/stores.ts'
import { Topology } from '../../../topology/streams/topology.ts'
import { json, serve, startWeir, temporary, weir } from './weir.ts'

test('canonicalize: lines in, lines out, in their order; what is no URL is an empty line and a message', async (t) => {
  const stdin = 'HTTP://Example.org:80/a/../b?z=1&a=2&utm_source=x#top\nnothing\nhttp://example.org/%7Eu\n'
  const plain = await weir(t, ['canonicalize'], { stdin })
  assert.equal(plain.stdout, 'http://example.org/b?a=2&z=1\n\nhttp://example.org/~u\n')
  assert.match(plain.stderr, /^line 2: /)
  assert.equal(plain.code, 0)
  const lines = await weir(t, ['canonicalize', '--json', '--base', 'http://h.example/d/'], {
    stdin: 'x?b=1&a=2\nhttp://\n',
  })
  const [good, bad] = json(lines.stdout)
  assert.deepEqual(good, {
    input: 'x?b=1&a=2',
    key: 'http://h.example/d/x?a=2&b=1',
    fetchUrl: 'http://h.example/d/x?b=1&a=2',
    error: null,
  })
  assert.deepEqual(
    { ...bad, error: typeof bad!.error },
    { input: 'http://', key: null, fetchUrl: null, error: 'string' },
  )
  const wrong = await weir(t, ['canonicalize', '--base', 'x'])
  assert.deepEqual([wrong.code, wrong.stderr], [2, 'weir: --base: "x" is no absolute URL\n'])
})

test('a reader that has enough ends a command quietly', async (t) => {
  const running = startWeir(t, ['canonicalize'], { stdin: 'http://example.org/a\n'.repeat(100_000) })
  const first = setInterval(() => running.stdout() !== '' && running.closeStdout(), 5)
  const { code, stderr } = await running.ended
  clearInterval(first)
  assert.deepEqual([code, stderr], [0, ''])
})

test('robots: verdicts of URLs as they are spelled, with line and rule; the exit code says nothing of them', async (t) => {
  const file = join(temporary(t), 'robots.txt')
  writeFileSync(
    file,
    'User-agent: *\nDisallow: /\n\nUser-agent: weir\nDisallow: /private/\nAllow: /private/open\nDisallow: /%C3%BC\n',
  )
  const urls = ['/private/x', 'https://example.org/private/open/y', 'http://h.example/ü', '/free']
  const { code, stdout } = await weir(t, ['robots', file, '--agent', 'weir/0.1', '--json', ...urls])
  assert.equal(code, 0)
  assert.deepEqual(json(stdout), [
    { url: '/private/x', allowed: false, line: 5, rule: 'Disallow: /private/' },
    { url: 'https://example.org/private/open/y', allowed: true, line: 6, rule: 'Allow: /private/open' },
    { url: 'http://h.example/ü', allowed: false, line: 7, rule: 'Disallow: /%C3%BC' },
    { url: '/free', allowed: true, line: null, rule: null },
  ])
  const stdin = readFileSync(file, 'utf8')
  const piped = await weir(t, ['robots', '-', '--agent', 'other', '/free'], { stdin })
  assert.equal(piped.stdout, 'disallowed /free  (line 2: Disallow: /)\n')
  const wrong = await weir(t, ['robots', file, '--agent', 'weir', 'private/x'])
  assert.equal(wrong.code, 2)
  assert.match(wrong.stderr, /^weir: judging "private\/x": /)
})

test('robots from a server: redirects are followed, 404 allows all, 503 and nobody there are failures', async (t) => {
  const site = await serve(t, (path) => {
    if (path === '/robots.txt') return { status: 301, headers: { location: '/real.txt' } }
    if (path === '/real.txt') return 'User-agent: *\nDisallow: /x'
    return path === '/broken' ? { status: 503 } : undefined
  })
  const ask = (source: string) => weir(t, ['robots', source, '--agent', 'weir', '/x', '--json'])
  const [real, none, broken, nobody] = await Promise.all([
    ask(`${site.origin}/robots.txt`),
    ask(`${site.origin}/none`),
    ask(`${site.origin}/broken`),
    ask('http://127.0.0.1:1/robots.txt'),
  ])
  assert.equal(json(real.stdout)[0]!.allowed, false)
  assert.equal(json(none.stdout)[0]!.allowed, true)
  assert.equal(broken.code, 1)
  assert.match(broken.stderr, /^weir: fetching http:.*\/broken: HTTP 503/)
  assert.equal(nobody.code, 1)
  assert.match(nobody.stderr, /^weir: fetching http:.*ECONNREFUSED/)
})

test('parse: what the crawler would read in a file; one that is missing does not hide the others', async (t) => {
  const file = join(temporary(t), 'page.html')
  writeFileSync(
    file,
    '<html lang=en><title>T &amp; U</title><p>Some words here.<a rel="x NOFOLLOW" href=../b>b</a><a href="http://[">c</a>',
  )
  const { code, stdout, stderr } = await weir(t, [
    'parse',
    'missing.html',
    file,
    '--url',
    'http://h.example/d/e/',
    '--json',
  ])
  const [parsed, ...more] = json(stdout)
  assert.equal(more.length, 0)
  const { contentHash, simhash, text, ...rest } = parsed!
  assert.deepEqual(rest, {
    file,
    url: 'http://h.example/d/e/',
    title: 'T & U',
    links: [
      { href: '../b', url: 'http://h.example/d/b', linkKind: 'anchor', rel: 'nofollow' },
      { href: 'http://[', url: null, linkKind: 'anchor', rel: null },
    ],
    language: 'en',
  })
  assert.match(String(text), /Some words here\./)
  assert.match(String(contentHash), /^[0-9a-f]{32}$/)
  assert.match(String(simhash), /^[0-9a-f]{16}$/)
  assert.equal(code, 1)
  assert.match(stderr, /^weir: reading missing.html: /)
})

test('topology describe prints what is written down in test/topology/topology.describe.txt', async (t) => {
  const { code, stdout } = await weir(t, ['topology', 'describe'])
  assert.equal(code, 0)
  const known = readFileSync(resolve(import.meta.dirname, '../topology.describe.txt'), 'utf8')
  assert.equal(
    stdout,
    known,
    'the topology has changed: if that is meant, npx weir topology describe > test/topology/topology.describe.txt',
  )
})

test('a store that is renamed makes the description another one', () => {
  const supplier = () => ({ process() {} })
  const describe = (rename: (name: string) => string) => {
    const topology = new Topology('schedule')
    const bytes = scheduleStores()[0]!.keySerde
    topology.addSource('unseen', { topics: ['weir.unseen'], keySerde: bytes, valueSerde: bytes })
    topology.addProcessor('schedule', supplier, ['unseen'])
    for (const store of scheduleStores()) topology.addStateStore({ ...store, name: rename(store.name) }, ['schedule'])
    return topology.describe()
  }
  const same = describe((name) => name)
  assert.equal(
    describe((name) => name),
    same,
  )
  assert.notEqual(
    describe((name) => (name === 'frontier' ? 'frontiers' : name)),
    same,
  )
  const known = readFileSync(resolve(import.meta.dirname, '../topology.describe.txt'), 'utf8')
  for (const { name } of scheduleStores()) assert.match(known, new RegExp(`stores: \\[[^\\]]*\\b${name}\\b`))
})

test('help: every command has an example, an unknown one a suggestion, and no command at all is a question', async (t) => {
  const [none, crawl, unknown, option, version] = await Promise.all([
    weir(t, []),
    weir(t, ['crawl', '--help']),
    weir(t, ['crwl']),
    weir(t, ['status', '--jsn']),
    weir(t, ['--version']),
  ])
  assert.equal(none.code, 0)
  assert.match(none.stdout, /Usage: weir/)
  assert.match(crawl.stdout, /Examples:\n {2}\$ weir crawl https:/)
  assert.match(crawl.stdout, /--max-pages <n>/)
  assert.deepEqual([unknown.code, unknown.stdout], [2, ''])
  assert.match(unknown.stderr, /^weir: unknown command 'crwl'\n\(Did you mean crawl\?\)/)
  assert.equal(option.code, 2)
  assert.match(option.stderr, /unknown option '--jsn'/)
  assert.match(version.stdout, /^\d+\.\d+\.\d+\n$/)
})
