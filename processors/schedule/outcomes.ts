import type { Fetched } from '../../schemas/types.ts'
import { ScheduleInputError } from './errors.ts'
import { enqueue, settleUntil } from './frontier.ts'
import { targetOf } from './gate.ts'
import * as keys from './keys.ts'
import { addSiteSum, closeEntry, closeLease, indexInLease } from './lease.ts'
import { rules } from './options.ts'
import { allClosed, isOpen, type PageRecord } from './records.ts'
import { hasChanged, judge } from './retry.ts'
import { applyRobotsOutcome } from './robots-outcome.ts'
import { observe, outcomeTime, strike, throttle, wasRequested } from './strikes.ts'
import { add, announcePage, decide, hostUrl, savePage, type Turn } from './turn.ts'

/** What an outcome must be before anything is written. Throws ScheduleInputError: the record goes to dead letters. */
export function checkOutcome(key: string, outcome: Fetched): void {
  const what = `applying the outcome ${JSON.stringify(key.slice(0, 200))}`
  if (key === '' || outcome.host === '') throw new ScheduleInputError(`${what}: no key or no host`)
  for (const time of [outcome.startedAt, outcome.endedAt, outcome.headersMs, outcome.index]) {
    if (!Number.isFinite(time)) throw new ScheduleInputError(`${what}: a number is none`)
  }
  const expected: { [kind in Fetched['outcomeKind']]: string | null } = {
    page: null,
    robots: 'robots:',
    dns: 'dns:',
    'visit-end': 'visit:',
  }
  const prefix = expected[outcome.outcomeKind]
  if (prefix !== null && !key.startsWith(prefix)) throw new ScheduleInputError(`${what}: not ${prefix}…`)
}

/**
 * One outcome of a visit. That of an entry which the current lease still waits for moves its URL and judges its host.
 * Any other (an expired lease's, a second one, an entry that the lease does not have) moves nothing: only what it
 * tells as fact is kept. A URL whose late outcome was a success stays queued, and is asked for again with the
 * validators that the late one brought, so that the answer is mostly a 304.
 */
export function applyOutcome(turn: Turn, key: string, outcome: Fetched): void {
  switch (outcome.outcomeKind) {
    case 'page':
      applyPage(turn, key, outcome)
      return
    case 'robots':
      applyRobots(turn, key, outcome)
      return
    case 'dns':
      applyDns(turn, outcome)
      return
    case 'visit-end':
      applyVisitEnd(turn, outcome)
  }
}

function isCurrent(turn: Turn, outcome: Fetched): boolean {
  return turn.host.lease?.leaseId === outcome.leaseId
}

function applyPage(turn: Turn, key: string, outcome: Fetched): void {
  const { host, desk } = turn
  const hash = keys.pageKey(key)
  const page = desk.stores.pages.get(hash)
  if (page === undefined || page.host !== turn.name) {
    observe(turn, outcome)
    decide(turn, key, 'unknown-url', `an outcome of a URL that ${turn.name} does not have`, outcome.fetchId)
    return
  }
  // Told again, word for word.
  if (page.lastFetchId === outcome.fetchId) return
  observe(turn, outcome)
  const isAnswer = outcome.status > 0
  if (isAnswer) {
    add(turn, 'fetched', 1)
    host.pagesFetched++
  }
  const leased = isCurrent(turn, outcome) ? desk.stores.frontier.get(keys.leaseKey(turn.name)) : undefined
  const index = indexInLease(leased, hash)
  if (index < 0 || !closeEntry(turn, index, page.origin)) {
    mergeLate(turn, page, hash, outcome)
    return
  }
  const lease = host.lease!
  if (isAnswer) lease.pages++
  const verdict = judge(page, outcome, outcomeTime(turn, outcome), desk.settings)
  if (verdict.host !== 'address-changed') lease.outcomes++
  mergeFacts(page, outcome, outcomeTime(turn, outcome))
  const fate = verdict.url
  switch (fate.kind) {
    case 'stay':
      savePage(turn, page, hash)
      break
    case 'again':
      enqueue(turn, page, hash)
      announcePage(turn, page, hash)
      break
    case 'settle':
      Object.assign(page, fate.change)
      settleUntil(turn, page, hash, fate)
      announcePage(turn, page, hash)
      if (fate.reason !== 'ok' && fate.reason !== 'redirect') {
        decide(turn, key, fate.state === 'gone' ? 'gone' : fate.reason, fate.evidence, outcome.fetchId)
      }
  }
  strike(turn, verdict.host, outcome, host.origins[page.origin])
  endIfDone(turn)
}

function mergeLate(turn: Turn, page: PageRecord, hash: Uint8Array, outcome: Fetched): void {
  const atMs = outcomeTime(turn, outcome)
  if (outcome.status > 0) addSiteSum(turn, { pages: 1 })
  if (outcome.status === 429 || outcome.status === 503) askedToWait(turn, outcome)
  if (outcome.status > 0 && atMs > (page.lastFetchedAt ?? 0)) {
    mergeFacts(page, outcome, atMs)
    announcePage(turn, page, hash)
  }
  decide(turn, page.url, 'late-outcome', `${outcome.fetchId}: ${outcome.status} ${outcome.error}`, outcome.fetchId)
}

/** Retry-After counts whoever heard it. */
function askedToWait(turn: Turn, outcome: Fetched): void {
  if ((outcome.retryAfterMs ?? 0) > 0) throttle(turn, outcome)
}

/** Validators, hashes and the pointer are those of the last whole body; a 304 and a revisit leave them. */
function mergeFacts(page: PageRecord, outcome: Fetched, atMs: number): void {
  page.lastFetchId = outcome.fetchId
  if (!wasRequested(outcome) || outcome.status === 0) return
  if (hasChanged(page, outcome) === true) page.changes++
  page.lastFetchedAt = atMs
  page.httpStatus = outcome.status
  page.fetches++
  if (outcome.parse !== null) {
    page.contentHash = outcome.parse.contentHash
    page.simhash = outcome.parse.simhash
  }
  if (outcome.status === 304) {
    page.etag = validator(outcome.etag) ?? page.etag
    page.lastModified = validator(outcome.lastModified) ?? page.lastModified
    return
  }
  if (outcome.archive !== null && !outcome.revisit) page.archive = outcome.archive
  if (outcome.status < 200 || outcome.status >= 300) return
  // A body that broke off is not what its validators stand for.
  const isWhole = outcome.truncated !== 'time' && outcome.truncated !== 'disconnect' && outcome.error === 'none'
  page.etag = isWhole ? validator(outcome.etag) : null
  page.lastModified = isWhole ? validator(outcome.lastModified) : null
  if (outcome.revisit) return
  page.payloadDigest = outcome.payloadDigest
  page.validatedAt = outcome.startedAt > 0 ? outcome.startedAt : atMs
}

/** One that is longer than any that makes sense is not kept. */
function validator(value: string | null): string | null {
  return value === null || value.length > 512 ? null : value
}

function applyRobots(turn: Turn, key: string, outcome: Fetched): void {
  const { lease, origins } = turn.host
  observe(turn, outcome)
  // A redirect that the fetcher follows within the visit: the entry's own outcome is still to come.
  if (outcome.reason === 'hop') return
  const isOurs = isCurrent(turn, outcome) && lease!.visitKind === 'robots'
  const origin = isOurs ? origins[lease!.origins[outcome.index] ?? -1] : undefined
  if (origin === undefined || !closeEntry(turn, outcome.index, null)) {
    if (outcome.status === 429 || outcome.status === 503) askedToWait(turn, outcome)
    decide(turn, key.slice('robots:'.length), 'late-outcome', `${outcome.fetchId}: ${outcome.status}`, outcome.fetchId)
    return
  }
  if (outcome.error !== 'address-changed') lease!.outcomes++
  applyRobotsOutcome(turn, origin, outcome)
  endIfDone(turn)
}

function applyDns(turn: Turn, outcome: Fetched): void {
  const { host, now } = turn
  const isOurs = isCurrent(turn, outcome) && host.lease!.visitKind === 'resolve'
  if (!isOurs || !closeEntry(turn, 0, null)) {
    decide(turn, hostUrl(turn), 'late-outcome', `${outcome.fetchId}: addresses`, outcome.fetchId)
    return
  }
  host.lease!.outcomes++
  const target = outcome.error === 'none' ? targetOf(outcome.addresses) : null
  if (target !== null) {
    if (host.gate !== null && host.gate !== target.gate) {
      decide(turn, hostUrl(turn), 'gate-changed', `${host.gate} to ${target.gate}`, outcome.fetchId)
    }
    if (host.address !== target.address) turn.policyChanged = true
    host.address = target.address
    host.gate = target.gate
    host.addressExpiresAt =
      now + Math.min(rules.maxAddressTtlMs, Math.max(rules.minAddressTtlMs, Math.floor(outcome.ttlMs) || 0))
    host.nameFailures = 0
    host.dnsFailures = 0
  } else if (outcome.error === 'nxdomain') {
    strike(turn, 'name-failure', outcome, undefined)
  } else if (outcome.error === 'address-refused') {
    strike(turn, 'address-refused', outcome, undefined)
  } else {
    strike(turn, 'dns-failure', outcome, undefined)
  }
  endIfDone(turn)
}

/** Entries that were not started go back: they are in the queue still, at its front, and nothing is charged. */
function applyVisitEnd(turn: Turn, outcome: Fetched): void {
  const { host, desk } = turn
  const { lease } = host
  if (lease === null || lease.leaseId !== outcome.leaseId) return
  if (outcome.reason === 'address-changed') host.addressExpiresAt = 0
  if (lease.visitKind === 'resolve') {
    closeEntry(turn, 0, null)
  } else if (lease.visitKind === 'robots') {
    const unstarted = new Set(outcome.unstarted.map((key) => key.replace(/^robots:/, '')))
    lease.origins.forEach((origin, i) => {
      if (unstarted.has(`${host.origins[origin]?.origin}/robots.txt`) && isOpen(lease, i)) closeEntry(turn, i, null)
    })
  } else {
    const leased = desk.stores.frontier.get(keys.leaseKey(turn.name))
    for (const key of outcome.unstarted) {
      const hash = keys.pageKey(key)
      const index = indexInLease(leased, hash)
      const page = index < 0 ? undefined : desk.stores.pages.get(hash)
      if (page !== undefined) closeEntry(turn, index, page.origin)
    }
  }
  endIfDone(turn)
}

function endIfDone(turn: Turn): void {
  if (turn.host.lease !== null && allClosed(turn.host.lease)) closeLease(turn)
}
