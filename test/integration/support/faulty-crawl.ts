/**
 * A crawl in a process of its own that kills itself: `node faulty-crawl.ts '{"data", "seed", "delayMs", "kill"}'` with
 * kill = {point, hit} or null. It is the command line's crawl with another `faults` port.
 */
import type { FaultPoint } from '../../../connectors/faults/types.ts'
import { openEmbeddedCrawl } from '../../../topology/embedded.ts'
import { defaultSettings } from '../../../topology/settings.ts'

export interface FaultyCrawl {
  data: string
  seed: string
  delayMs: number
  /** SIGKILL at the n-th time (from 1) that the point is passed; null = run to the end. */
  kill: { point: FaultPoint; hit: number } | null
  /** With ClickHouse; default false. */
  analytics?: boolean
}

if (import.meta.main) {
  const { data, seed, delayMs, kill, analytics = false } = JSON.parse(process.argv[2]!) as FaultyCrawl
  let left = kill?.hit ?? 0
  const crawl = await openEmbeddedCrawl({
    settings: { ...defaultSettings, data, delayMs, maxDepth: null, allowPrivate: true, analytics },
    seeds: [seed],
    onNotice: (text) => void process.stderr.write(`${text}\n`),
    faults: {
      hit(point) {
        if (point === kill?.point && --left === 0) process.kill(process.pid, 'SIGKILL')
      },
    },
  })
  const report = await crawl.finished
  process.stdout.write(`${JSON.stringify(report)}\n`)
}
