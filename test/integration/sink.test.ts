/**
 * Crawls with their ClickHouse: killed between plan, insert and commit; with a server that goes away in the middle; and
 * asked in SQL while they run. Afterwards each table has exactly what the log has, each record once.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openAnalytics } from '../../topology/analytics.ts'
import { withoutChdb } from '../connectors/analytics/support.ts'
import type { FaultyCrawl } from './support/faulty-crawl.ts'
import { startNode } from './support/process.ts'
import { assertTablesAreTheLog, withTables } from './support/tables.ts'

const root = resolve(import.meta.dirname, '../..')
const weir = join(root, 'topology/cli/weir.ts')
const skip = withoutChdb()
const pages = 250

test('kill -9 between plan, insert and commit: each record is one row', { skip }, async (t) => {
  const seed = await site(t)
  const data = temporary(t)
  const run = async (kill: FaultyCrawl['kill']) => {
    const crawl: FaultyCrawl = { data, seed, delayMs: 5, kill, analytics: true }
    const child = startNode(t, join(root, 'test/integration/support/faulty-crawl.ts'), [JSON.stringify(crawl)])
    return { ...(await child.exit), stderr: child.stderr() }
  }
  for (const point of ['batch-planned', 'batch-delivered', 'batch-planned', 'batch-delivered'] as const) {
    const { signal, stderr } = await run({ point, hit: 1 })
    assert.equal(signal, 'SIGKILL', stderr)
  }
  const { signal, stderr } = await run({ point: 'batch-delivered', hit: 2 })
  t.diagnostic(`the last kill: ${signal}`)
  const last = await run(null)
  assert.equal(last.code, 0, `${stderr}${last.stderr}`)
  const rows = await withTables(data, (analytics) => assertTablesAreTheLog(data, analytics))
  assert.ok(rows > pages, `${rows} rows`)
})

test('a server that goes away while crawling: the crawl goes on, its rows arrive when it is back', {
  skip,
}, async (t) => {
  const seed = await site(t)
  const data = temporary(t)
  const server = openAnalytics('elsewhere', join(temporary(t), 'clickhouse'), undefined)
  t.after(() => server.close())
  const { url, username, password } = await server.access()
  const proxy = await startProxy(t, Number(new URL(url).port))
  const passwordFile = join(temporary(t), 'password')
  writeFileSync(passwordFile, `${password}\n`)
  const child = startNode(t, weir, ['crawl', seed, '--data', data, '--allow-private', '--delay-ms', '0', '--json'], {
    env: {
      CLICKHOUSE_URL: `http://127.0.0.1:${proxy.port}`,
      CLICKHOUSE_USER: username,
      CLICKHOUSE_PASSWORD_FILE: passwordFile,
      CLICKHOUSE_DATABASE: 'elsewhere',
    },
  })
  // Each connection ends in the middle of an answer at some time, and for a while there is none.
  await proxy.used
  proxy.cut()
  proxy.setUp(false)
  await sleep(1500)
  proxy.setUp(true)
  const { code } = await child.exit
  assert.equal(code, 0, child.stderr())
  assert.match(child.stderr(), /does not take rows now; the crawl goes on/)
  assert.match(child.stderr(), /takes rows again/)
  assert.ok((await assertTablesAreTheLog(data, server)) > pages)
})

test('no server at all: the crawl ends and says what is missing; the next start brings it', { skip }, async (t) => {
  const seed = await site(t)
  const data = temporary(t)
  const crawl = ['crawl', seed, '--data', data, '--allow-private', '--delay-ms', '0']
  const first = startNode(t, weir, crawl, { env: { CLICKHOUSE_URL: 'http://127.0.0.1:9' } })
  assert.equal((await first.exit).code, 0, first.stderr())
  assert.match(first.stderr(), /\d+ records are not in ClickHouse yet; the next start brings them there/)
  const second = startNode(t, weir, crawl)
  assert.equal((await second.exit).code, 0, second.stderr())
  assert.equal(second.stderr(), '')
  const rows = await withTables(data, (analytics) => assertTablesAreTheLog(data, analytics))
  assert.ok(rows > pages)
  // Its ClickHouse deleted, it is filled again from the log.
  rmSync(join(data, 'clickhouse'), { recursive: true })
  const third = startNode(t, weir, crawl)
  assert.equal((await third.exit).code, 0, third.stderr())
  assert.equal(await withTables(data, (analytics) => assertTablesAreTheLog(data, analytics)), rows)
})

test('weir sql and weir query answer while the crawl runs, and afterwards; what writes is refused', {
  skip,
}, async (t) => {
  const seed = await site(t)
  const data = temporary(t)
  const ask = async (...args: string[]) => {
    const child = startNode(t, weir, [...args, '--data', data])
    const { code } = await child.exit
    return { code, stdout: child.stdout(), stderr: child.stderr() }
  }
  const none = await ask('sql', 'SELECT 1')
  assert.equal(none.code, 3)

  const crawl = startNode(t, weir, ['crawl', seed, '--data', data, '--allow-private', '--delay-ms', '20'])
  let seen = 0
  for (let n = 0; n < 100 && seen === 0; n++) {
    const { code, stdout } = await ask('sql', 'SELECT count() AS n, max(simhash) AS s FROM fetches', '--json')
    if (code === 0) seen = (JSON.parse(stdout) as { n: number }).n
    else await sleep(50)
  }
  assert.ok(seen > 0 && seen < pages, `${seen} rows while it runs`)
  const dropped = await ask('sql', 'DROP TABLE fetches')
  assert.equal(dropped.code, 2)
  assert.match(dropped.stderr, /only what reads is run .* not DROP/)
  assert.equal((await crawl.exit).code, 0, crawl.stderr())

  const states = await ask('query', 'url-states', '--json')
  assert.equal(states.code, 0, states.stderr)
  const row = JSON.parse(states.stdout) as { state: string; reason: string; urls: number }
  assert.deepEqual([row.state, row.reason, row.urls], ['known', 'ok', pages])
  assert.deepEqual(await ask('query', 'politeness-audit', '--json'), { code: 0, stdout: '', stderr: '' })
  const table = await ask('query', 'status-mix')
  assert.match(table.stdout, /^answer +fetches +share +hosts\n200 +250 +1 +1\n$/)
  const wrong = await ask('sql', 'SELECT nothing FROM pages')
  assert.equal(wrong.code, 1)
  assert.match(wrong.stderr, /nothing/)
  assert.equal((await ask('query', 'url-stats')).code, 2)
})

function temporary(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'weir-sink-'))
  t.after(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

/** A tree of pages with three links each; gives its root. */
async function site(t: TestContext): Promise<string> {
  const server = createServer((req, res) => {
    const n = Number(/^\/(\d+)$/.exec(req.url ?? '')?.[1] ?? (req.url === '/' ? 0 : -1))
    if (n < 0) return void res.writeHead(404).end()
    const links = [3 * n + 1, 3 * n + 2, 3 * n + 3].filter((i) => i < pages).map((i) => `<a href="/${i}">${i}</a>`)
    res.writeHead(200, { 'content-type': 'text/html' })
    res.end(`<title>Page ${n}</title>${links.join(' ')}<p>${`word${n} other${n % 7} \n\n`.repeat(30)}</p>`)
  })
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', () => ready()))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

/** TCP in front of a port, that can be down and can cut what is open. */
async function startProxy(t: TestContext, target: number) {
  const open = new Set<Socket>()
  let isUp = true
  let bytes = 0
  let tellUsed = () => {}
  const used = new Promise<void>((resolve) => {
    tellUsed = resolve
  })
  const server = createTcpServer((client) => {
    if (!isUp) return void client.destroy()
    const upstream = connect(target, '127.0.0.1')
    for (const socket of [client, upstream]) {
      open.add(socket)
      socket.on('error', () => {}).on('close', () => open.delete(socket))
    }
    client.on('data', (chunk) => {
      bytes += chunk.length
      if (bytes > 20_000) tellUsed()
    })
    client.pipe(upstream).pipe(client)
  })
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', () => ready()))
  const cut = () => {
    for (const socket of open) socket.destroy()
  }
  t.after(() => {
    cut()
    server.close()
  })
  return {
    port: (server.address() as AddressInfo).port,
    used,
    cut,
    setUp(up: boolean) {
      isUp = up
    },
  }
}
