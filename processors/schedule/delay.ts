import { backOffMs, rules, type Settings } from './options.ts'
import type { HostRecord } from './records.ts'

type Speed = Pick<
  HostRecord,
  'responseMs' | 'latencyMs' | 'latencyBaselineMs' | 'throttledMs' | 'lastEndedAt' | 'holdUntil'
> & { readonly origins: readonly { readonly crawlDelayMs: number | null }[] }
type DelaySettings = Pick<Settings, 'minDelayMs' | 'maxDelayMs'>

export interface Delay {
  readonly delayMs: number
  /** What decided: minimum, response-time, latency, crawl-delay, throttled. */
  readonly reason: string
}

const responseFactor = 10
const responseWeight = 0.2
/** The baseline follows slowly: what a host normally is. */
const baselineWeight = 0.02
/** Below it twice the baseline is noise. */
const latencyFloorMs = 50

/**
 * The gap from the last response's end to the next request: max(10 × response time, minimum) ≤ 60 s, doubled while
 * the latency is over twice its baseline, not below the greatest crawl-delay of the host's origins (obeyed up to 24 h;
 * a short one lowers nothing), not below what 429 and 503 have built up (≤ 1 h).
 */
export function delayOf(host: Speed, settings: DelaySettings): Delay {
  const maxMs = Math.max(settings.maxDelayMs, settings.minDelayMs)
  let delayMs = settings.minDelayMs
  let reason = 'minimum'
  const raise = (ms: number, why: string): void => {
    if (ms <= delayMs) return
    delayMs = ms
    reason = why
  }
  if (settings.minDelayMs > 0) raise(Math.min(maxMs, responseFactor * (host.responseMs ?? 0)), 'response-time')
  if (isSlow(host)) raise(Math.min(maxMs, 2 * delayMs), 'latency')
  for (const origin of host.origins) {
    raise(Math.min(rules.maxCrawlDelayMs, origin.crawlDelayMs ?? 0), 'crawl-delay')
  }
  raise(host.throttledMs, 'throttled')
  return { delayMs: Math.ceil(delayMs), reason }
}

/** Earliest moment of the host's next request, parks aside. 0 before its first. */
export function readyAt(host: Speed, settings: DelaySettings): number {
  return Math.max(host.holdUntil, host.lastEndedAt === null ? 0 : host.lastEndedAt + delayOf(host, settings).delayMs)
}

/** A response took `durationMs` from its request's first byte to its own end, `headersMs` to its head. */
export function observeResponse(host: HostRecord, durationMs: number, headersMs: number): void {
  const response = Math.max(0, durationMs)
  const latency = Math.max(0, headersMs)
  host.responseMs = follow(host.responseMs, response, responseWeight)
  host.latencyMs = follow(host.latencyMs, latency, responseWeight)
  host.latencyBaselineMs = follow(host.latencyBaselineMs, latency, baselineWeight)
}

/** 429 or 503. With Retry-After the server has said how long; without, the delay doubles, from a second on, to 1 h. */
export function observeThrottle(host: HostRecord, settings: DelaySettings): void {
  const fromMs = Math.max(delayOf(host, settings).delayMs, 1000)
  host.throttledMs = backOffMs(fromMs, 2, 2, rules.maxThrottleMs)
}

/** × 0.9 a success, until the host is as fast as it would be without. */
export function observeSuccess(host: HostRecord, settings: DelaySettings): void {
  if (host.throttledMs === 0) return
  const eased = host.throttledMs * 0.9
  host.throttledMs = 0
  if (eased > Math.max(delayOf(host, settings).delayMs, 100)) host.throttledMs = eased
}

/** How long a visit is planned to start requests, and how many URLs fit. */
export function visitPlan(
  delayMs: number,
  responseMs: number | null,
): { readonly planMs: number; readonly size: number } {
  const slow = delayMs >= 1000
  const planMs = slow ? 30_000 : 2000
  const expectedFetchMs = Math.max(1, responseMs ?? expectedUnknownMs)
  return {
    planMs,
    size: Math.max(1, Math.min(slow ? 5 : 256, Math.floor(planMs / (delayMs + expectedFetchMs)))),
  }
}

export function deadlineOf(notBefore: number, planMs: number, requestTimeoutMs: number): number {
  return notBefore + planMs + requestTimeoutMs + 10_000
}

const expectedUnknownMs = 500

function isSlow(host: Speed): boolean {
  const { latencyMs, latencyBaselineMs } = host
  return (
    latencyMs !== null && latencyBaselineMs !== null && latencyMs > latencyFloorMs && latencyMs > 2 * latencyBaselineMs
  )
}

function follow(average: number | null, value: number, weight: number): number {
  return average === null ? value : average + weight * (value - average)
}
