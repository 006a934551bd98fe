import assert from 'node:assert/strict'
import { test } from 'node:test'
import zlib from 'node:zlib'
import { createMemoryArchive } from '../../../connectors/archive/memory.ts'
import { createSystemClock } from '../../../connectors/clock/system.ts'
import { createSystemResolver } from '../../../connectors/dns/system.ts'
import { createUndiciClient } from '../../../connectors/http/undici.ts'
import { parsePage } from '../../../processors/parse/page.ts'
import { iterateLinks } from '../../../schemas/links.ts'
import type { Visit } from '../../../schemas/types.ts'
import { httpServer } from '../../connectors/http/servers.ts'
import { entryOf, openTask, sha1, visitOf } from './harness.ts'

test('resolve, robots and pages against a server, with the archive and the parser', async () => {
  const page = Buffer.from('<title>Caf\xe9</title><body><a href="/b?x=1&amp;y=2">b</a> some words here', 'latin1')
  const gzip = zlib.gzipSync(page)
  const seen: { url: string; startedMs: number; endedMs: number }[] = []
  const server = await httpServer((req, res) => {
    const record = { url: req.url!, startedMs: performance.now(), endedMs: 0 }
    seen.push(record)
    res.on('finish', () => {
      record.endedMs = performance.now()
    })
    if (req.url === '/robots.txt') res.end('User-agent: *\nDisallow: /private\n')
    else if (req.url === '/moved') res.writeHead(301, { location: 'page' }).end()
    else {
      res.writeHead(200, { 'content-type': 'text/html; charset=iso-8859-1', 'content-encoding': 'gzip', etag: '"v1"' })
      res.write(gzip.subarray(0, 20))
      res.end(gzip.subarray(20))
    }
  })
  const clock = createSystemClock()
  const http = createUndiciClient({ clock, allowPrivate: true })
  const resolver = createSystemResolver({ clock })
  const archive = createMemoryArchive({ crawl: 'test' })
  const task = openTask(clock, {
    http,
    resolver,
    archive,
    parse: parsePage,
    userAgent: 'weir/0.1 (+https://example.org/)',
    agentToken: 'weir',
    allowPrivate: true,
  })
  const run = async (visit: Visit): Promise<void> => {
    task.take({ ...visit, notBefore: clock.nowMs(), deadline: clock.nowMs() + 90_000 })
    while (task.inFlight() > 0) await new Promise((resolve) => setTimeout(resolve, 2))
  }
  try {
    const host = 'shop.localhost'
    const common = { host, site: host, delayMs: 40 }
    await run(visitOf([], { ...common, visitKind: 'resolve', address: null }))
    const [dns] = task.fetched()
    assert.deepEqual(dns!.addresses, ['127.0.0.1'])

    const address = dns!.addresses[0]!
    const base = `http://${host}:${server.port}`
    const robotsEntry = entryOf(`${base}/robots.txt`, { entryKind: 'robots', depth: 0 })
    await run(visitOf([robotsEntry], { ...common, visitKind: 'robots', address }))
    const robots = task.fetched()[1]!
    assert.match(Buffer.from(robots.robotsBody!).toString(), /Disallow: \/private/)

    const entries = [entryOf(`${base}/moved`), entryOf(`${base}/page`)]
    await run(visitOf(entries, { ...common, address, lastEndedAt: robots.endedAt }))
    const [moved, fetched] = task.fetched().slice(2)
    assert.deepEqual([moved!.status, moved!.location], [301, `${base}/page`])
    assert.deepEqual([fetched!.status, fetched!.etag, fetched!.truncated], [200, '"v1"', 'none'])
    assert.deepEqual([fetched!.rawBytes, fetched!.bodyBytes], [gzip.length, page.length])
    assert.ok(sha1(gzip).equals(Buffer.from(fetched!.payloadDigest!)))

    const links = task
      .of('discovered-urls')
      .map(({ key, value }) => [key, [...iterateLinks(value.links)].map((l) => l.href)])
    assert.deepEqual(links, [
      [`${base}/moved`, [`${base}/page`]],
      [`${base}/page`, ['/b?x=1&y=2']],
    ])
    assert.equal(task.of('parsed')[0]!.value.title, 'Café')

    const kept = await archive.read(fetched!.archive!)
    assert.deepEqual([kept.url, kept.status, kept.type], [`${base}/page`, 200, 'response'])
    assert.ok(kept.rawBody.equals(gzip))

    assert.deepEqual(
      seen.map(({ url }) => url),
      ['/robots.txt', '/moved', '/page'],
    )
    for (let i = 1; i < seen.length; i++) {
      const gapMs = seen[i]!.startedMs - seen[i - 1]!.endedMs
      assert.ok(gapMs >= 40, `gap of ${gapMs} ms`)
    }
  } finally {
    await http.close()
    resolver.close()
    await server.close()
  }
})
