import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { startNode } from '../../integration/support/process.ts'
import { startWebServer } from '../../web/server.ts'
import type { ProcessReport } from './crawl-process.ts'
import { temporaryDirectory } from './sockets.ts'

test('2,000 pages leave nothing open behind, memory does not grow by pages, and the process ends by itself', async (t) => {
  const server = await startWebServer({ seed: 3, hosts: 60, pagesPerHost: 40, pageBytes: 3000, faults: false })
  t.after(() => server.close())
  const data = temporaryDirectory(t)
  // A host with a crawl-delay would take minutes.
  const seeds = server.model.seeds().filter((url) => server.model.crawlDelayMs(new URL(url).hostname) === 0)
  const child = startNode(t, join(import.meta.dirname, 'crawl-process.ts'), [JSON.stringify({ data, seeds })], {
    readyTimeoutMs: 60_000,
    execArgv: ['--expose-gc'],
  })
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
  const growthOf = (samples: readonly number[]): number => samples.at(-1)! - samples[1]!
  assert.ok(growthOf(report.heap) < 15e6, `the heap grew to ${report.heap}`)
  assert.ok(growthOf(report.rss) < 150e6, `the process grew to ${report.rss}`)
})
