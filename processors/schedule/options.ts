const secondMs = 1000
const minuteMs = 60 * secondMs
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs

/** Pages of one task, uncommitted ones included: that answered, and that are out. */
export interface PagesUsed {
  readonly fetched: number
  readonly leased: number
}

/** What a whole crawl may still ask for, counted over all tasks (`createPageBudget` in read.ts). */
export interface PageBudget {
  /** Each task says what it has used whenever that changes, before the commit makes it visible to others. */
  note(partition: number, used: PagesUsed): void
  /** Pages that may be leased now: the limit less those that answered and those that are out. */
  leasable(): number
  /** The limit is reached by pages that answered: nothing that is out can give anything back. */
  exhausted(): boolean
}

export interface ScheduleOptions {
  /** The topic `fetched` as the log names it: leases expire by the task's position in it. */
  readonly fetchedTopic: string
  /** Product token that robots.txt groups are matched with. */
  readonly robotsToken: string
  /** Least gap between a response's end and the next request. 0 also takes the response time out of the delay. */
  readonly minDelayMs?: number
  /** The greatest delay, unless a crawl-delay or `minDelayMs` asks for more. */
  readonly maxDelayMs?: number
  /** Links from a seed; null = no limit. */
  readonly maxDepth?: number | null
  readonly maxPagesPerHost?: number
  readonly maxPagesPerSite?: number
  /** Absent = the crawl as a whole has no limit. */
  readonly pageBudget?: PageBudget
  /** Visits of one task that may be out together. */
  readonly maxVisits?: number
  /** How long one request may take; part of a visit's deadline. */
  readonly requestTimeoutMs?: number
  /** How far clocks may be apart. */
  readonly skewMs?: number
  /** A visit may be issued this long before its `notBefore`. */
  readonly lookaheadMs?: number
  readonly punctuateMs?: number
  /**
   * Wall clock of the process's start, when nothing that an earlier process did can still be running (a log that one
   * process has to itself): visits issued before are void. It is a time, not a flag, so that a task which is closed
   * and initialized again within the process keeps the visits that are out.
   */
  readonly leasesVoidBeforeMs?: number
  /**
   * Told once after each start of a task, when leases that are void have ended and what raised limits let go is free:
   * before that nothing is issued, and an idle look says nothing.
   */
  readonly onSwept?: (partition: number) => void
  /** Until a page is asked for again, before its changes are known. */
  readonly recrawlMs?: number
  readonly minRecrawlMs?: number
  readonly maxRecrawlMs?: number
  /** Factors of the interval: unchanged, changed. */
  readonly recrawlGrow?: number
  readonly recrawlShrink?: number
}

export type Settings = Required<Omit<ScheduleOptions, OptionalSetting>> & Pick<ScheduleOptions, OptionalSetting>
type OptionalSetting = 'pageBudget' | 'leasesVoidBeforeMs' | 'onSwept'

export const defaults = {
  minDelayMs: 1 * secondMs,
  maxDelayMs: 60 * secondMs,
  maxDepth: null,
  maxPagesPerHost: Number.POSITIVE_INFINITY,
  maxPagesPerSite: Number.POSITIVE_INFINITY,
  maxVisits: 1024,
  requestTimeoutMs: 60 * secondMs,
  skewMs: 5 * secondMs,
  lookaheadMs: 500,
  punctuateMs: 200,
  recrawlMs: 7 * dayMs,
  minRecrawlMs: 1 * hourMs,
  maxRecrawlMs: 30 * dayMs,
  recrawlGrow: 1.5,
  recrawlShrink: 1 / 1.5,
} as const

export function settingsOf(options: ScheduleOptions): Settings {
  return { ...defaults, ...options }
}

/** Times and counts of the retry table and the caches: the defaults that nobody has had to change yet. */
export const rules = {
  maxAttempts: 5,
  retryMs: 15 * minuteMs,
  retryFactor: 4,
  failedRecheckMs: 30 * dayMs,
  forbiddenRecheckMs: 30 * dayMs,
  forbiddenInRow: 20,
  forbiddenBackOffMs: 1 * hourMs,
  serverErrorsInRow: 5,
  missingRecheckMs: 1 * dayMs,
  goneRecheckMs: 30 * dayMs,
  maxGoneRecheckMs: 360 * dayMs,
  nameFailureMs: [1 * dayMs, 7 * dayMs, 30 * dayMs],
  dnsFailureMs: 5 * minuteMs,
  maxDnsFailureMs: 1 * dayMs,
  networkFailureMs: 1 * minuteMs,
  maxNetworkFailureMs: 6 * hourMs,
  tlsFailureMs: 1 * dayMs,
  addressRefusedMs: 30 * dayMs,
  maxThrottleMs: 1 * hourMs,
  maxRetryAfterMs: 24 * hourMs,
  maxCrawlDelayMs: 24 * hourMs,
  robotsTtlMs: 24 * hourMs,
  robotsErrorMs: 1 * minuteMs,
  maxRobotsErrorMs: 1 * hourMs,
  robotsElsewhereMs: 1 * dayMs,
  parkMs: 30 * dayMs,
  minAddressTtlMs: 5 * minuteMs,
  maxAddressTtlMs: 1 * dayMs,
  /** Between visits in which nothing could be started, doubling: no busy loop with a fetcher that is full. */
  holdMs: 1 * secondMs,
  maxHoldMs: 60 * secondMs,
  /** A host with nothing to do for this long has no record in `host-scheduled`. */
  idleMs: 60 * secondMs,
} as const

/** base × factor^(n − 1), at most `maxMs`; n counts from 1. */
export function backOffMs(baseMs: number, factor: number, n: number, maxMs: number): number {
  return Math.min(maxMs, baseMs * factor ** Math.min(Math.max(n, 1) - 1, 40))
}
