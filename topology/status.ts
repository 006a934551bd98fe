import type { Clock } from '../connectors/clock/types.ts'
import { readCounts, type Tasks } from '../processors/schedule/read.ts'
import type { Streams } from './streams/runtime.ts'

export interface CrawlStatus {
  readonly crawl: string
  readonly running: boolean
  /** URLs by `<state>/<reason>`; their sum is all that were admitted. */
  readonly states: { readonly [stateAndReason: string]: number }
  /** Pages that answered, whatever they said. */
  readonly pages: number
  readonly requests: number
  readonly queued: number
  /** Visits that a fetcher has. */
  readonly inFlight: number
  readonly hosts: number
  readonly pagesPerSec: number
  /** URLs that wait because something failed. */
  readonly errors: number
  /** Records that are written and not yet processed. */
  readonly lag: number
}

export interface StatusSources {
  readonly crawl: string
  readonly clock: Clock
  readonly streams: Streams
  readonly tasks: () => Tasks
  /** Records that are not in ClickHouse. */
  readonly sinkLag: () => number
}

/** Where a crawl that runs in this process stands. While it closes, whoever shows it gets the last one. */
export function createStatus({ crawl, clock, streams, tasks, sinkLag }: StatusSources): () => CrawlStatus {
  const meter = createMeter(clock)
  const read = (): CrawlStatus => {
    const counts = readCounts(tasks())
    return {
      crawl,
      running: true,
      states: counts.states,
      pages: counts.fetched,
      requests: counts.requests,
      queued: counts.queued,
      inFlight: streams.inFlight(`${crawl}-fetch`),
      hosts: counts.hosts,
      pagesPerSec: meter.rate(counts.fetched),
      errors: troubled(counts.states),
      lag: streams.lag() + sinkLag(),
    }
  }
  let last = read()
  return () => {
    if (streams.state() === 'RUNNING') last = read()
    return last
  }
}

/** Parked for a reason that lies with a server, and pages that failed. */
function troubled(states: CrawlStatus['states']): number {
  const reasons = ['parked/robots-unreachable', 'parked/dns', 'parked/back-off', 'known/failed']
  return reasons.reduce((sum, reason) => sum + (states[reason] ?? 0), 0)
}

/** Pages a second over the last few seconds. */
function createMeter(clock: Clock): { rate(pages: number): number } {
  const windowMs = 5000
  const samples: { atMs: number; pages: number }[] = []
  return {
    rate(pages) {
      const atMs = clock.monotonicMs()
      samples.push({ atMs, pages })
      while (samples.length > 2 && samples[0]!.atMs < atMs - windowMs) samples.shift()
      const first = samples[0]!
      return atMs > first.atMs ? ((pages - first.pages) * 1000) / (atMs - first.atMs) : 0
    },
  }
}
