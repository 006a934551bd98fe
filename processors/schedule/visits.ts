import { xxh64Hex } from '../../schemas/hash.ts'
import type { Visit, VisitEntry, VisitKind } from '../../schemas/types.ts'
import { deadlineOf, delayOf, readyAt, visitPlan } from './delay.ts'
import { type Picked, pickReady, promoteWaiting, recheckBlocked, releaseDeep } from './frontier.ts'
import { literalAddress, resolveGate, targetOf } from './gate.ts'
import * as keys from './keys.ts'
import { addSiteSum, closeLease, siteSums } from './lease.ts'
import { rules } from './options.ts'
import { type OriginRecord, openBits, type PageRecord } from './records.ts'
import { blockedDueAt, decide, forwardTombstone, hostUrl, notePages, parkHost, type Turn } from './turn.ts'

/**
 * Does for a host what can be done now: ends parks that are over, brings URLs back whose time has come, and issues the
 * next visit when the host may be asked: resolve, then robots, then pages. Without a lease only.
 */
export function serve(turn: Turn): void {
  const { host, now, desk } = turn
  const { settings } = desk
  if (host.lease !== null) return
  const horizon = now + settings.lookaheadMs
  let notBefore = Math.max(now, readyAt(host, settings))
  if (notBefore > horizon) return
  if (host.park !== null) {
    if (host.park.until > horizon) return
    // A park that ends within the look-ahead is over, its time is kept: the next visit may be one that asks the host
    // for nothing (resolve), and the one after that must still wait.
    host.holdUntil = Math.max(host.holdUntil, host.park.until)
    notBefore = Math.max(notBefore, host.park.until)
    host.park = null
    turn.policyChanged = true
  }
  endOriginParks(turn)
  promoteWaiting(turn, horizon)
  releaseDeep(turn)

  const open = openOrigins(turn, horizon)
  if (open.length === 0) return
  if (!hasBudget(turn)) return
  if (!hasAddress(turn, notBefore)) {
    issue(turn, {
      visitKind: 'resolve',
      notBefore: now,
      urls: [],
      origins: [],
      robotsVersion: null,
    })
    return
  }
  const { delayMs } = delayOf(host, settings)
  const plan = visitPlan(delayMs, host.responseMs)
  const unread = open.filter((i) => !isFresh(host.origins[i]!, notBefore, plan.planMs, delayMs))
  if (unread.length > 0) {
    const origins = unread.slice(0, plan.size)
    const urls = origins.map((i) => robotsEntry(host.origins[i]!))
    issue(turn, {
      visitKind: 'robots',
      notBefore,
      urls,
      origins,
      robotsVersion: null,
    })
    return
  }
  for (const i of open) recheckBlocked(turn, i, horizon, rules.parkMs)
  const ready = pickReady(turn, open, Math.min(plan.size, pagesLeft(turn)), rules.parkMs)
  // One origin a visit: one connection, one version of robots.txt.
  const picked = fitting(ready.filter(({ page }) => page.origin === ready[0]!.page.origin))
  if (picked.length === 0) return
  const hashes = new Uint8Array(16 * picked.length)
  picked.forEach(({ hash }, i) => {
    hashes.set(hash, 16 * i)
  })
  const origin = host.origins[picked[0]!.page.origin]!
  origin.leased = picked.length
  desk.stores.frontier.put(keys.leaseKey(turn.name), hashes)
  const urls = picked.map(({ page }) => pageEntry(page))
  issue(turn, {
    visitKind: 'pages',
    notBefore,
    urls,
    origins: [],
    robotsVersion: origin.robotsVersion,
  })
}

/**
 * A lease whose deadline is past ends when the task has read `fetched` up to an end that was sampled after deadline
 * and skew: then no outcome of it can be on its way unread.
 */
export function expire(turn: Turn): void {
  const { host, now, desk } = turn
  const { lease } = host
  if (lease === null) return
  const overAt = lease.deadline + desk.settings.skewMs
  if (now < overAt) return
  const position = desk.context.position(desk.settings.fetchedTopic)
  if (lease.mark === null && position.highAtMs >= overAt) lease.mark = position.high
  if (lease.mark === null || position.next < lease.mark) return
  // The fetcher may have had a request open until the deadline.
  if (lease.visitKind !== 'resolve') host.lastEndedAt = Math.max(host.lastEndedAt ?? 0, lease.deadline)
  decide(turn, hostUrl(turn), 'lease-expired', `${lease.leaseId} had no outcome by ${iso(overAt)}`, lease.leaseId)
  closeLease(turn)
}

/** A lease that an earlier process held ends at this process's start: one full delay passes from there. */
export function endVoidLease(turn: Turn, startedAtMs: number): void {
  const { host } = turn
  const { lease } = host
  if (lease === null || lease.issuedAt >= startedAtMs) return
  if (lease.visitKind !== 'resolve') host.lastEndedAt = Math.max(host.lastEndedAt ?? 0, startedAtMs)
  decide(turn, hostUrl(turn), 'lease-void', `${lease.leaseId} was out when the process started`, lease.leaseId)
  closeLease(turn)
}

/** How many pages budgets still allow to lease for this host. */
export function pagesLeft(turn: Turn): number {
  const { host, desk } = turn
  notePages(turn)
  const { maxPagesPerHost, maxPagesPerSite, pageBudget } = desk.settings
  const site = maxPagesPerSite === Number.POSITIVE_INFINITY ? undefined : siteSums(turn)
  return Math.min(
    maxPagesPerHost - host.pagesFetched,
    site === undefined ? Number.POSITIVE_INFINITY : maxPagesPerSite - (site.pages ?? 0) - (site.leased ?? 0),
    pageBudget === undefined ? Number.POSITIVE_INFINITY : pageBudget.leasable(),
  )
}

/** Why no page of the host will ever be asked for under the present budgets; undefined = there is no such reason. */
export function spentBudget(turn: Turn): string | undefined {
  const { host, desk } = turn
  notePages(turn)
  const { maxPagesPerHost, maxPagesPerSite, pageBudget } = desk.settings
  if (host.pagesFetched >= maxPagesPerHost) return `${host.pagesFetched} pages of the host, at most ${maxPagesPerHost}`
  if (maxPagesPerSite !== Number.POSITIVE_INFINITY) {
    const pages = siteSums(turn).pages ?? 0
    if (pages >= maxPagesPerSite) return `${pages} pages of ${host.site}, at most ${maxPagesPerSite}`
  }
  if (pageBudget?.exhausted() === true) return 'the pages of the whole crawl are spent'
  return undefined
}

interface Order {
  readonly visitKind: VisitKind
  readonly notBefore: number
  readonly urls: VisitEntry[]
  /** visitKind robots: the origin of each entry. */
  readonly origins: number[]
  readonly robotsVersion: string | null
}

function issue(turn: Turn, order: Order): void {
  const { host, name, now, desk } = turn
  const { settings } = desk
  const { delayMs, reason } = delayOf(host, settings)
  const { planMs } = visitPlan(delayMs, host.responseMs)
  const notBefore = Math.ceil(order.notBefore)
  const gate = order.visitKind === 'resolve' ? resolveGate(name) : host.gate!
  const size = Math.max(1, order.urls.length)
  host.visitCounter++
  host.lease = {
    leaseId: `${xxh64Hex(name)}-${host.visitCounter}`,
    visitKind: order.visitKind,
    issuedAt: now,
    deadline: deadlineOf(notBefore, planMs, settings.requestTimeoutMs),
    size,
    open: openBits(size),
    origins: order.origins,
    outcomes: 0,
    pages: 0,
    struck: false,
    mark: null,
  }
  if (order.visitKind === 'pages') addSiteSum(turn, { leased: size })
  const value: Visit = {
    leaseId: host.lease.leaseId,
    visitKind: order.visitKind,
    host: name,
    site: host.site,
    address: order.visitKind === 'resolve' ? null : host.address,
    gate,
    notBefore,
    deadline: host.lease.deadline,
    delayMs,
    delayReason: reason,
    lastEndedAt: host.lastEndedAt,
    robotsVersion: order.robotsVersion,
    urls: order.urls,
  }
  // Both in one commit: whatever partition it is in, the host has one record.
  if (host.publishedGate !== null && host.publishedGate !== gate) forwardTombstone(turn, host.publishedGate)
  desk.context.forward({ key: name, value }, 'host-scheduled')
  host.publishedGate = gate
}

/** As many as a record takes: URLs may be as long as browsers allow. */
function fitting(picked: readonly Picked[]): Picked[] {
  let bytes = 0
  return picked.filter(({ page }) => {
    bytes += 3 * (page.url.length + page.fetchUrl.length) + 1024
    return bytes <= maxVisitBytes
  })
}
const maxVisitBytes = 2 * 1024 * 1024

/** Origins that have something to do and may be asked. */
function openOrigins(turn: Turn, horizon: number): number[] {
  const open: number[] = []
  turn.host.origins.forEach((origin, i) => {
    if (origin.park !== null) return
    if (origin.queued > 0 || (origin.blocked > 0 && blockedDueAt(turn, i) <= horizon)) open.push(i)
  })
  return open
}

function endOriginParks(turn: Turn): void {
  for (const origin of turn.host.origins) {
    if (origin.park === null || origin.park.until > turn.now) continue
    origin.park = null
    turn.policyChanged = true
  }
}

function hasBudget(turn: Turn): boolean {
  const spent = spentBudget(turn)
  if (spent !== undefined) {
    parkHost(turn, 'budget', turn.now + rules.parkMs, spent)
    return false
  }
  if (pagesLeft(turn) > 0) return true
  // All that is left is out with other hosts, and may come back unused.
  turn.host.holdUntil = turn.now + rules.holdMs
  return false
}

function hasAddress(turn: Turn, atMs: number): boolean {
  const { host } = turn
  if (host.address !== null && host.addressExpiresAt > atMs) return true
  const literal = literalAddress(turn.name)
  const target = literal === null ? null : targetOf([literal])
  if (target === null) return false
  host.address = target.address
  host.gate = target.gate
  host.addressExpiresAt = atMs + rules.maxAddressTtlMs
  return true
}

/**
 * Whether the origin's robots.txt is known for as long as the visit may start requests. A delay of the same order as
 * the cache's age (a crawl-delay of a day) would leave no time for pages: a copy lasts for one request after its own.
 */
function isFresh(origin: OriginRecord, notBefore: number, planMs: number, delayMs: number): boolean {
  if (origin.verdict === 'unknown' || origin.verdict === 'disallow-all') return false
  return notBefore + Math.min(planMs, 30_000) < Math.max(origin.expiresAt, origin.fetchedAt + 2 * delayMs)
}

function robotsEntry(origin: OriginRecord): VisitEntry {
  const url = `${origin.origin}/robots.txt`
  return {
    key: url,
    fetchUrl: url,
    entryKind: 'robots',
    depth: 0,
    hops: 0,
    attempt: origin.failures,
    seedChain: false,
    etag: null,
    lastModified: null,
    payloadDigest: null,
    lastFetchedAt: null,
  }
}

function pageEntry(page: PageRecord): VisitEntry {
  return {
    key: page.url,
    fetchUrl: page.fetchUrl,
    entryKind: page.entryKind,
    depth: page.depth,
    hops: page.hops,
    attempt: page.attempt,
    seedChain: page.seedChain,
    etag: page.etag,
    lastModified: page.lastModified,
    payloadDigest: page.payloadDigest,
    lastFetchedAt: page.validatedAt,
  }
}

function iso(ms: number): string {
  return new Date(ms).toISOString()
}
