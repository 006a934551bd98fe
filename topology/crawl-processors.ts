import type { Archive } from '../connectors/archive/types.ts'
import type { Resolver } from '../connectors/dns/types.ts'
import { type Faults, noFaults } from '../connectors/faults/types.ts'
import type { HttpClient } from '../connectors/http/types.ts'
import { createCanonicalize } from '../processors/canonicalize/canonicalize.ts'
import { createDedupe } from '../processors/dedupe.ts'
import { createFetch } from '../processors/fetch/fetch.ts'
import { createExtractor } from '../processors/parse/extract.ts'
import { parsePage } from '../processors/parse/page.ts'
import type { PageBudget } from '../processors/schedule/options.ts'
import { createSchedule } from '../processors/schedule/schedule.ts'
import type { CrawlProcessors } from './crawl.ts'
import type { agentOf, Settings } from './settings.ts'
import { topicName } from './topics.ts'

export interface CrawlProcessorOptions {
  readonly crawl: string
  readonly settings: Settings
  readonly agent: Pick<ReturnType<typeof agentOf>, 'userAgent' | 'token'>
  readonly http: HttpClient
  readonly resolver: Resolver
  readonly archive: Archive
  readonly parseVersion?: number
  readonly faults?: Faults
  /** Kept on top of every delay. */
  readonly gapMarginMs?: number
  /** Visits issued before this wall clock time are void: the log belongs to one process, and those before it are dead. */
  readonly leasesVoidBeforeMs?: number
  /** Once aborted no request starts any more. */
  readonly stopping?: AbortSignal
  readonly pageBudget?: PageBudget
  readonly onSwept?: (partition: number) => void
  readonly onWidened?: (host: string, why: string) => void
}

/** The processors of a crawl with its settings; `crawl.ts` wires them. */
export function createCrawlProcessors(options: CrawlProcessorOptions): CrawlProcessors {
  const { crawl, settings, agent, onWidened, onSwept, pageBudget, leasesVoidBeforeMs } = options
  return {
    canonicalize: createCanonicalize({
      discoveredTopic: topicName(crawl, 'discovered-urls'),
      maxUrlLength: settings.maxUrlLength,
      ...(onWidened === undefined ? {} : { onWidened }),
    }),
    dedupe: createDedupe(),
    schedule: createSchedule({
      fetchedTopic: topicName(crawl, 'fetched'),
      robotsToken: agent.token,
      minDelayMs: settings.delayMs,
      maxDepth: settings.maxDepth,
      maxVisits: settings.maxInFlight,
      requestTimeoutMs: settings.requestTimeoutMs,
      recrawlMs: settings.recrawlIntervalS * 1000,
      ...(settings.maxPagesPerHost === null ? {} : { maxPagesPerHost: settings.maxPagesPerHost }),
      ...(pageBudget === undefined ? {} : { pageBudget }),
      ...(leasesVoidBeforeMs === undefined ? {} : { leasesVoidBeforeMs }),
      ...(onSwept === undefined ? {} : { onSwept }),
    }),
    fetch: createFetch({
      http: options.http,
      resolver: options.resolver,
      archive: options.archive,
      parse: parsePage,
      extract: createExtractor(settings.extract),
      parseVersion: options.parseVersion ?? 1,
      userAgent: agent.userAgent,
      agentToken: agent.token,
      allowPrivate: settings.allowPrivate,
      requestTimeoutMs: settings.requestTimeoutMs,
      maxPageBytes: settings.maxBodyBytes,
      gapMarginMs: options.gapMarginMs ?? 0,
      faults: options.faults ?? noFaults,
      ...(options.stopping === undefined ? {} : { stopping: options.stopping }),
    }),
  }
}
