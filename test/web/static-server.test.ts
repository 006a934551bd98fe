import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { startNode } from '../integration/support/process.ts'
import { walkSite } from '../integration/support/walk.ts'
import { startStaticServer } from './static-server.ts'

test('files, directories and what is not there', async (t) => {
  const { origin, log } = await serve(t)
  const get = (path: string, init: RequestInit = {}): Promise<Response> =>
    fetch(origin + path, { redirect: 'manual', ...init })

  const home = await get('/')
  assert.deepEqual([home.status, home.headers.get('content-type')], [200, 'text/html; charset=utf-8'])
  assert.match(await home.text(), /<h1>Home/)
  const moved = await get('/sub?x=1')
  assert.deepEqual([moved.status, moved.headers.get('location')], [301, '/sub/?x=1'])
  assert.equal((await get('/style.css?v=2')).headers.get('content-type'), 'text/css')
  for (const path of [
    '/nothing',
    '/empty/',
    '/style.css/',
    '/dangling.js',
    '/%00',
    '/%zz',
    '/sub/%2e%2e%2f%2e%2e%2fx',
  ]) {
    assert.equal((await get(path)).status, 404, path)
  }
  assert.equal((await get('/', { method: 'POST' })).status, 405)
  const head = await get('/', { method: 'HEAD' })
  assert.ok(Number(head.headers.get('content-length')) > 0)
  assert.equal(await head.text(), '')
  assert.ok(log.every((entry) => entry.complete && entry.endMs! >= entry.startMs && entry.status > 0))
})

test('a path never leaves the root', async (t) => {
  const { port } = await serve(t)
  const answer = await new Promise<string>((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () =>
      socket.end('GET /../../../../../../etc/passwd HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n'),
    )
    const chunks: Buffer[] = []
    socket.on('data', (chunk) => chunks.push(chunk)).on('end', () => resolve(String(Buffer.concat(chunks))))
    socket.on('error', reject)
  })
  assert.match(answer, /^HTTP\/1\.1 404 /)
})

test('conditional requests by ETag and by date', async (t) => {
  const { origin } = await serve(t)
  const first = await fetch(`${origin}/style.css`)
  await first.text()
  const etag = first.headers.get('etag')!
  const modified = first.headers.get('last-modified')!
  const status = async (headers: Record<string, string>): Promise<number> => {
    const response = await fetch(`${origin}/style.css`, { headers })
    assert.equal((await response.text()) === '', response.status === 304)
    return response.status
  }
  assert.equal(await status({ 'if-none-match': etag }), 304)
  assert.equal(await status({ 'if-none-match': `"other", W/${etag}` }), 304)
  assert.equal(await status({ 'if-none-match': '"other"', 'if-modified-since': modified }), 200)
  assert.equal(await status({ 'if-modified-since': modified }), 304)
  assert.equal(await status({ 'if-modified-since': new Date(0).toUTCString() }), 200)
})

test('robots.txt of the argument', async (t) => {
  const { origin } = await serve(t, {
    robots: 'User-agent: *\nDisallow: /sub/\n',
  })
  assert.match(await (await fetch(`${origin}/robots.txt`)).text(), /Disallow: \/sub\//)
  const plain = await serve(t)
  assert.equal((await fetch(`${plain.origin}/robots.txt`)).status, 404)
})

test('the independent walk: pages, redirects, other files, missing ones', async (t) => {
  const { origin } = await serve(t)
  const walked = await walkSite(`${origin}/#top`)
  const paths = (urls: Iterable<string>): string[] => [...urls].map((url) => url.slice(origin.length)).sort()
  assert.deepEqual(paths(walked.pages), ['/', '/sub/', '/sub/deep.html', '/sub/deeper.html'])
  assert.deepEqual(paths(walked.redirects.keys()), ['/sub'])
  assert.deepEqual(paths(walked.redirects.values()), ['/sub/'])
  assert.deepEqual(paths(walked.others), ['/style.css'])
  assert.deepEqual(paths(walked.missing), ['/nothing.html'])
  assert.equal(walked.failed.size, 0)
  const near = await walkSite(`${origin}/`, { maxDepth: 1 })
  assert.deepEqual(paths(near.pages), ['/', '/sub/'], 'a redirect adds no depth')
})

test('as a process with slow bodies: a client that leaves half-way is in the log', async (t) => {
  const root = site(t)
  const script = new URL('static-server.ts', import.meta.url).pathname
  const child = startNode(t, script, ['--root', root, '--chunk-bytes', '64', '--chunk-delay-ms', '20'])
  const ready = JSON.parse(await child.ready) as {
    port: number
    control: number
  }
  const response = await fetch(`http://127.0.0.1:${ready.port}/big.txt`)
  const reader = response.body!.getReader()
  await reader.read()
  await reader.cancel()
  assert.match(await (await fetch(`http://127.0.0.1:${ready.port}/style.css`)).text(), /red/)
  let lines: { path: string; complete: boolean; endMs: number | null }[] = []
  for (let i = 0; lines.length === 0 || lines.some((line) => line.endMs === null); i++) {
    assert.ok(i < 200, 'the log never says that it ended')
    const text = await (await fetch(`http://127.0.0.1:${ready.control}/__web/log`)).text()
    lines = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
  }
  assert.deepEqual(
    lines.map((line) => [line.path, line.complete]),
    [
      ['/big.txt', false],
      ['/style.css', true],
    ],
  )
  assert.equal((await fetch(`http://127.0.0.1:${ready.control}/__web/expected`)).status, 404)
  child.kill('SIGTERM')
  assert.deepEqual(await child.exit, { code: 0, signal: null })
})

async function serve(t: TestContext, over: { robots?: string } = {}) {
  const server = await startStaticServer({ root: site(t), ...over })
  t.after(() => server.close())
  return {
    origin: `http://127.0.0.1:${server.port}`,
    port: server.port,
    log: server.log,
  }
}

function site(t: TestContext): string {
  const root = mkdtempSync(join(tmpdir(), 'weir-test-site-'))
  t.after(() => rmSync(root, { recursive: true }))
  mkdirSync(join(root, 'sub'))
  mkdirSync(join(root, 'empty'))
  const page = (name: string, body: string): void => writeFileSync(join(root, name), `<!DOCTYPE html>${body}`)
  page('index.html', '<h1>Home</h1><a href="sub">Sub</a><a href="style.css">x</a><a href="nothing.html#a">y</a>')
  page('sub/index.html', '<base href="/sub/"><a href="deep.html">Deep</a><a href="http://other.localhost/">away</a>')
  page(
    'sub/deep.html',
    '<!-- <a href="/commented.html"> --><a href="./deeper.html#part">Deeper</a><a href="mailto:x">m</a>',
  )
  page('sub/deeper.html', '<a href="/">Home</a>')
  page('unlinked.html', 'Nobody links here')
  writeFileSync(join(root, 'style.css'), 'a { color: red }\n')
  writeFileSync(join(root, 'big.txt'), 'x'.repeat(20_000))
  symlinkSync('/nowhere/jquery.js', join(root, 'dangling.js'))
  return root
}
