import type { Fetched, StateName, StateReason } from '../../schemas/types.ts'
import { backOffMs, rules, type Settings } from './options.ts'
import type { PageRecord } from './records.ts'

/** What an outcome means for its URL. */
export type UrlFate =
  /** Stays at the front of its queue, nothing charged: no request was made. */
  | { readonly kind: 'stay' }
  /** Goes to the end of its class, nothing charged: the host is at fault, but another URL may fare better. */
  | { readonly kind: 'again' }
  | {
      readonly kind: 'settle'
      readonly state: StateName
      readonly reason: StateReason
      readonly evidence: string
      readonly next: number
      readonly change: Partial<PageRecord>
    }

/** What it means for its host. `attempt`: the server's fault, which counts only when it comes in a row. */
export type HostFate =
  | 'success'
  | 'forbidden'
  | 'attempt'
  | 'throttled'
  | 'network'
  | 'tls'
  | 'name-failure'
  | 'dns-failure'
  | 'address-changed'
  | 'address-refused'

export interface Verdict {
  readonly url: UrlFate
  readonly host: HostFate
}

type PageFacts = Pick<
  PageRecord,
  | 'attempt'
  | 'missing'
  | 'missingSince'
  | 'state'
  | 'recheckMs'
  | 'intervalMs'
  | 'fetches'
  | 'contentHash'
  | 'payloadDigest'
>
type OutcomeFacts = Pick<
  Fetched,
  'status' | 'error' | 'errorMessage' | 'location' | 'revisit' | 'payloadDigest' | 'parse' | 'truncated'
>
type RecrawlSettings = Pick<Settings, 'recrawlMs' | 'minRecrawlMs' | 'maxRecrawlMs' | 'recrawlGrow' | 'recrawlShrink'>

/**
 * The retry table: one page outcome, judged. Pure. `atMs` is when the outcome was had. An error never makes a URL
 * gone: that takes two 404 or 410 at least a day apart. A body that was cut is still an answer when `error` is none.
 */
export function judge(page: PageFacts, outcome: OutcomeFacts, atMs: number, settings: RecrawlSettings): Verdict {
  if (outcome.error !== 'none') return judgeError(page, outcome, atMs)
  const { status } = outcome
  if (status === 304) return { url: unchanged(page, atMs, settings), host: 'success' }
  if (status >= 200 && status < 300) return { url: answered(page, outcome, atMs, settings), host: 'success' }
  if (status >= 300 && status < 400 && outcome.location !== null) {
    const url = settled('known', 'redirect', `${status} to ${outcome.location}`, atMs + settings.recrawlMs, answer)
    return { url, host: 'success' }
  }
  switch (status) {
    case 404:
    case 410:
      return { url: missing(page, status, atMs), host: 'success' }
    case 401:
    case 403:
    case 451: {
      const url = settled('known', 'forbidden', `${status}`, atMs + rules.forbiddenRecheckMs, answer)
      return { url, host: 'forbidden' }
    }
    case 429:
    case 503:
      return { url: { kind: 'again' }, host: 'throttled' }
    case 408:
    case 425:
      return { url: charge(page, `${status}`, atMs), host: 'attempt' }
    default:
      if (status >= 500 || status < 200) return { url: charge(page, `${status}`, atMs), host: 'attempt' }
      // A 3xx that leads nowhere, a 4xx that says no more than no: asking again soon would change nothing.
      return {
        url: settled('known', 'failed', `${status}`, atMs + rules.failedRecheckMs, answer),
        host: 'success',
      }
  }
}

/** What a new interval is after a crawl that found a change, found none, or could not tell. */
export function nextIntervalMs(currentMs: number, changed: boolean | null, settings: RecrawlSettings): number {
  const base = currentMs > 0 ? currentMs : settings.recrawlMs
  if (changed === null) return base
  const ms = base * (changed ? settings.recrawlShrink : settings.recrawlGrow)
  return Math.round(Math.min(settings.maxRecrawlMs, Math.max(settings.minRecrawlMs, ms)))
}

/** Changes that any answer of the server brings: what was counted against the URL is forgotten. */
const answer = {
  attempt: 0,
  missing: 0,
  missingSince: null,
  recheckMs: 0,
} as const

function judgeError(page: PageFacts, outcome: OutcomeFacts, atMs: number): Verdict {
  const evidence = outcome.errorMessage === null ? outcome.error : `${outcome.error}: ${outcome.errorMessage}`
  switch (outcome.error) {
    case 'nxdomain':
      return { url: { kind: 'stay' }, host: 'name-failure' }
    case 'servfail':
    case 'dns-timeout':
      return { url: { kind: 'stay' }, host: 'dns-failure' }
    case 'address-changed':
      return { url: { kind: 'stay' }, host: 'address-changed' }
    case 'address-refused':
      return { url: { kind: 'stay' }, host: 'address-refused' }
    case 'tls':
      return { url: { kind: 'again' }, host: 'tls' }
    case 'refused':
    case 'unreachable':
    case 'connect-timeout':
      return { url: { kind: 'again' }, host: 'network' }
    case 'reset':
      // Before the head it is the host's fault, within the body the URL's.
      if (outcome.status === 0) return { url: { kind: 'again' }, host: 'network' }
      return { url: charge(page, evidence, atMs), host: 'attempt' }
    default:
      return { url: charge(page, evidence, atMs), host: 'attempt' }
  }
}

function charge(page: PageFacts, what: string, atMs: number): UrlFate {
  const attempt = page.attempt + 1
  if (attempt >= rules.maxAttempts) {
    return settled('known', 'failed', `${attempt} attempts, last: ${what}`, atMs + rules.failedRecheckMs, {
      attempt: 0,
    })
  }
  const waitMs = backOffMs(rules.retryMs, rules.retryFactor, attempt, rules.parkMs)
  return settled('parked', 'back-off', `attempt ${attempt}: ${what}`, atMs + waitMs, { attempt })
}

function missing(page: PageFacts, status: number, atMs: number): UrlFate {
  const change = {
    attempt: 0,
    missing: page.missing + 1,
    missingSince: page.missingSince ?? atMs,
  }
  if (page.missingSince === null) {
    return settled('known', 'missing', `${status}`, atMs + rules.missingRecheckMs, change)
  }
  if (atMs - page.missingSince < rules.missingRecheckMs) {
    return settled('known', 'missing', `${status}`, page.missingSince + rules.missingRecheckMs, change)
  }
  const recheckMs = page.recheckMs === 0 ? rules.goneRecheckMs : Math.min(rules.maxGoneRecheckMs, 2 * page.recheckMs)
  const evidence = `${status}, ${change.missing} times since ${new Date(page.missingSince).toISOString()}`
  return settled('gone', 'missing', evidence, atMs + recheckMs, {
    ...change,
    recheckMs,
  })
}

function unchanged(page: PageFacts, atMs: number, settings: RecrawlSettings): UrlFate {
  const intervalMs = nextIntervalMs(page.intervalMs, page.fetches === 0 ? null : false, settings)
  return settled('known', 'ok', '304', atMs + intervalMs, {
    ...answer,
    intervalMs,
  })
}

function answered(page: PageFacts, outcome: OutcomeFacts, atMs: number, settings: RecrawlSettings): UrlFate {
  const intervalMs = nextIntervalMs(page.intervalMs, hasChanged(page, outcome), settings)
  const evidence = outcome.truncated === 'none' ? `${outcome.status}` : `${outcome.status}, cut by ${outcome.truncated}`
  return settled('known', 'ok', evidence, atMs + intervalMs, {
    ...answer,
    intervalMs,
  })
}

/** By the hash of the words where both crawls have one, else by the payload; null when there is nothing to compare. */
export function hasChanged(
  page: Pick<PageRecord, 'contentHash' | 'payloadDigest'>,
  outcome: Pick<Fetched, 'revisit' | 'payloadDigest' | 'parse'>,
): boolean | null {
  if (outcome.revisit) return false
  if (page.contentHash !== null && outcome.parse !== null) {
    return Buffer.compare(page.contentHash, outcome.parse.contentHash) !== 0
  }
  if (page.payloadDigest !== null && outcome.payloadDigest !== null) {
    return Buffer.compare(page.payloadDigest, outcome.payloadDigest) !== 0
  }
  return null
}

function settled(
  state: StateName,
  reason: StateReason,
  evidence: string,
  next: number,
  change: Partial<PageRecord>,
): UrlFate {
  return { kind: 'settle', state, reason, evidence, next, change }
}
