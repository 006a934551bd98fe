/**
 * A crawl in a process of its own, which says what it holds while it runs and when it has ended:
 * `node --expose-gc crawl-process.ts '{"data", "seeds"}'`. It does not end itself: whatever is left open keeps it.
 */
import { existsSync, readdirSync } from 'node:fs'
import { openEmbeddedCrawl } from '../../../topology/embedded.ts'
import { settingsFor } from './sockets.ts'

export interface ProcessReport {
  readonly pages: number
  /** Bytes, each after some pages more; `heap` when garbage was collected. */
  readonly rss: readonly number[]
  readonly heap: readonly number[]
  /** Open files and sockets: before the crawl, at most while it ran, after it; empty where /proc is not. */
  readonly files: readonly number[]
  /** What keeps the event loop alive after the end, standard streams left out. */
  readonly left: readonly string[]
}

if (import.meta.main) {
  const { data, seeds } = JSON.parse(process.argv[2]!) as { data: string; seeds: string[] }
  const before = countFiles()
  const crawl = await openEmbeddedCrawl({ settings: settingsFor(data), seeds })
  const rss: number[] = []
  const heap: number[] = []
  let most = 0
  const timer = setInterval(() => {
    most = Math.max(most, countFiles())
    if (crawl.status().pages < 250 * (rss.length + 1)) return
    globalThis.gc?.()
    rss.push(process.memoryUsage.rss())
    heap.push(process.memoryUsage().heapUsed)
  }, 20)
  const { pages } = await crawl.finished
  clearInterval(timer)
  // One turn for what closes on the way out.
  await new Promise((done) => setTimeout(done, 50))
  const report: ProcessReport = {
    pages,
    rss,
    heap,
    files: [before, most, countFiles()],
    left: process.getActiveResourcesInfo().filter((name) => !/^(PipeWrap|TTYWrap|FSReqCallback)$/.test(name)),
  }
  process.stdout.write(`${JSON.stringify(report)}\n`)
}

function countFiles(): number {
  return existsSync('/proc/self/fd') ? readdirSync('/proc/self/fd').length : 0
}
