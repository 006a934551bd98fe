import { xxh64Hex } from '../../schemas/hash.ts'
import type { Fetched } from '../../schemas/types.ts'
import { maxRobotsBytes } from '../robots.ts'
import { backOffMs, rules } from './options.ts'
import type { OriginRecord } from './records.ts'
import { errorText, outcomeTime, strike, throttle } from './strikes.ts'
import { decide, parkOrigin, type Turn } from './turn.ts'

/**
 * The outcome of fetching an origin's robots.txt (RFC 9309 §2.3.1): 2xx = its rules, 4xx but 429 = all is allowed,
 * anything else = nothing is, unless there is an older copy, which then stays in force. Errors are asked again after a
 * minute, doubling to an hour; answers are kept for 24 h.
 */
export function applyRobotsOutcome(turn: Turn, origin: OriginRecord, outcome: Fetched): void {
  const { status } = outcome
  turn.policyChanged = true
  switch (outcome.error) {
    case 'address-changed':
      strike(turn, 'address-changed', outcome, origin)
      return
    case 'address-refused':
      strike(turn, 'address-refused', outcome, origin)
      return
    case 'nxdomain':
      strike(turn, 'name-failure', outcome, origin)
      return
    case 'servfail':
    case 'dns-timeout':
      strike(turn, 'dns-failure', outcome, origin)
      return
    case 'none':
      break
    case 'tls':
      fail(turn, origin, outcome, errorText(outcome), rules.tlsFailureMs)
      return
    default:
      fail(turn, origin, outcome, errorText(outcome), 0)
      return
  }
  if (outcome.truncated === 'time' || outcome.truncated === 'disconnect') {
    fail(turn, origin, outcome, `robots.txt was cut by ${outcome.truncated}`, 0)
  } else if (status >= 200 && status < 300) {
    succeed(turn, origin, outcome, (outcome.robotsBody ?? new Uint8Array(0)).subarray(0, maxRobotsBytes))
  } else if (status >= 300 && status < 400 && leadsElsewhere(origin, outcome.location)) {
    fail(turn, origin, outcome, `robots.txt redirects to ${outcome.location}`, rules.robotsElsewhereMs)
  } else if (status === 429 || status >= 500 || status < 200) {
    if (status === 429 || status === 503) {
      if ((outcome.retryAfterMs ?? 0) > 0) throttle(turn, outcome)
    }
    fail(
      turn,
      origin,
      outcome,
      `robots.txt answered ${status}`,
      Math.min(outcome.retryAfterMs ?? 0, rules.maxRetryAfterMs),
    )
  } else {
    // 4xx, and a chain of redirects within the host that leads to no file.
    succeed(turn, origin, outcome, null)
  }
}

function succeed(turn: Turn, origin: OriginRecord, outcome: Fetched, body: Uint8Array | null): void {
  const atMs = outcomeTime(turn, outcome)
  const before = origin.robotsVersion
  if (body === null) {
    origin.verdict = 'allow-all'
    origin.robotsVersion = 'none'
    origin.bodyHash = null
    origin.crawlDelayMs = null
  } else {
    const hash = xxh64Hex(body)
    const { robots } = turn.desk.stores
    if (robots.get(hash) === undefined) robots.put(hash, body)
    origin.verdict = 'rules'
    origin.robotsVersion = hash
    origin.bodyHash = hash
    origin.crawlDelayMs = crawlDelay(turn, hash)
  }
  origin.httpStatus = outcome.status
  origin.fetchedAt = atMs
  origin.expiresAt = atMs + rules.robotsTtlMs
  origin.failures = 0
  origin.park = null
  if (origin.robotsVersion !== before) {
    origin.generation++
    const what = `robots.txt ${origin.robotsVersion} after ${before === '' ? 'none fetched' : before}`
    decide(turn, `${origin.origin}/robots.txt`, 'robots-version', what, outcome.fetchId)
  }
  strike(turn, 'success', outcome, origin)
}

function fail(turn: Turn, origin: OriginRecord, outcome: Fetched, why: string, leastMs: number): void {
  const atMs = outcomeTime(turn, outcome)
  origin.failures++
  const waitMs = Math.max(leastMs, backOffMs(rules.robotsErrorMs, 2, origin.failures, rules.maxRobotsErrorMs))
  origin.expiresAt = atMs + waitMs
  if (origin.bodyHash !== null) {
    // The rules that the host has last given stay in force.
    origin.verdict = 'rules'
    const evidence = `${why}; copy ${origin.bodyHash} of ${new Date(origin.fetchedAt).toISOString()} stays`
    decide(turn, `${origin.origin}/robots.txt`, 'robots-kept', evidence, outcome.fetchId)
    return
  }
  origin.verdict = 'disallow-all'
  origin.robotsVersion = 'unreachable'
  origin.httpStatus = outcome.status
  origin.fetchedAt = atMs
  origin.crawlDelayMs = null
  parkOrigin(turn, origin, 'robots-unreachable', origin.expiresAt, why)
}

function crawlDelay(turn: Turn, hash: string): number | null {
  const ms = turn.desk.rules.rulesOf(hash)?.crawlDelayMs ?? null
  return ms === null ? null : Math.min(Math.ceil(ms), rules.maxCrawlDelayMs)
}

function leadsElsewhere(origin: OriginRecord, location: string | null): boolean {
  if (location === null) return false
  const target = URL.parse(location)
  return target !== null && target.hostname !== new URL(origin.origin).hostname
}
