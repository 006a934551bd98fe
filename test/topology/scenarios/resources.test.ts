import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { startNode } from '../../integration/support/process.ts'
import { startWebServer } from '../../web/server.ts'
import type { ProcessReport } from './crawl-process.ts'
import { temporaryDirectory } from './sockets.ts'

test('2,000 pages leave nothing open behind, memory does not grow by pages, and the process ends by itself', async (t) => {
  const server = await startWebServer({ seed: 3, hosts: 20, pagesPerHost: 100, pageBytes: 3000, faults: false })
  t.after(() => server.close())
  const data = temporaryDirectory(t)
  const child = startNode(t, join(import.meta.dirname, 'crawl-process.ts'), [
    JSON.stringify({ data, seeds: server.model.seeds() }),
  ], { readyTimeoutMs: 60_000 })
  const report = JSON.parse(await child.ready) as ProcessReport
  const endedMs = performance.now()
  assert.deepEqual(await child.exit, { code: 0, signal: null })
  assert.ok(performance.now() - endedMs < 2000, 'it ended at once')
  t.diagnostic(JSON.stringify(report))
  assert.ok(report.pages >= 2000, `${report.pages} pages`)
  assert.deepEqual(report.left, [])
  const [before, most, after] = report.files
  assert.ok(most! < before! + 200, `${most} files were open at a time, ${before} before`)
  assert.ok(after! <= before! + 2, `${after} files are open, ${before} before`)
  const { rss } = report
  const growth = rss.at(-1)! - rss[1]!
  assert.ok(growth < 120e6, `grew by ${Math.round(growth / 1e6)} MB over 1,500 pages: ${rss.map((b) => Math.round(b / 1e6))}`)
})
