import type { Candidate, Decision, Fetched, HostPolicy, PageState, StateReason, Visit } from '../../schemas/types.ts'
import type { ProcessorContext } from '../../topology/streams/types.ts'
import { readyAt } from './delay.ts'
import { tombstoneKey } from './gate.ts'
import * as keys from './keys.ts'
import { rules, type Settings } from './options.ts'
import { type HostRecord, longerPark, newHost, type OriginRecord, type PageRecord, type Park } from './records.ts'
import type { RobotsRulesCache } from './robots-rules.ts'
import type { ScheduleStores } from './stores.ts'

export type ScheduleInput = Candidate | Fetched
export type ScheduleOutput = Visit | PageState | HostPolicy | Decision

/** What one task works with. */
export interface Desk {
  readonly context: ProcessorContext<string, ScheduleOutput>
  readonly settings: Settings
  readonly stores: ScheduleStores
  readonly rules: RobotsRulesCache
}

/**
 * One look at one host: its record is read, changed by whoever has the turn, and written by `closeTurn` together with
 * all that follows from it (sums, the entry in `due`, tombstone, policy).
 */
export interface Turn {
  readonly desk: Desk
  readonly now: number
  readonly name: string
  readonly host: HostRecord
  /** Sums of the task: `<state>/<reason>` and others. Through `add` alone. */
  readonly sums: { [name: string]: number }
  /** What the host's own lists add to the sums as they were when the turn began. */
  readonly before: ReadonlyMap<string, number>
  /** Key of the host's entry in `due`. */
  readonly dueBefore: Uint8Array | null
  /** Something that `host-policies` tells has changed. */
  policyChanged: boolean
}

export const allKey = 'all'

/** `site` makes the host when it is not known yet; without it an unknown host gives undefined. */
export function openTurn(desk: Desk, name: string, site?: string): Turn | undefined {
  let host = desk.stores.hosts.get(name)
  const isNew = host === undefined
  if (host === undefined) {
    if (site === undefined) return undefined
    host = newHost(site)
  }
  const sums = desk.stores.counts.get(allKey)?.sums ?? {}
  const turn: Turn = {
    desk,
    now: desk.context.currentSystemTimeMs(),
    name,
    host,
    sums,
    before: hostSums(host),
    dueBefore: dueKeyOf(name, host),
    policyChanged: false,
  }
  if (isNew) add(turn, 'hosts', 1)
  return turn
}

/** Writes what the turn has changed. Nothing may use the turn afterwards. */
export function closeTurn(turn: Turn): void {
  const { desk, host, name, now } = turn
  const due = nextDue(turn)
  setDue(turn, due)
  if (host.lease === null && host.publishedGate !== null && (due === null || due - now > rules.idleMs)) {
    forwardTombstone(turn, host.publishedGate)
    host.publishedGate = null
  }
  const after = hostSums(host)
  for (const [bucket, n] of turn.before) add(turn, bucket, -n)
  for (const [bucket, n] of after) add(turn, bucket, n)
  desk.stores.hosts.put(name, host)
  desk.stores.counts.put(allKey, { sums: turn.sums })
  noteUsed(desk, turn.sums.fetched ?? 0, turn.sums['leased/none'] ?? 0)
}

/** Tells the crawl's budget what this task has used, with what the turn has changed so far. */
export function notePages(turn: Turn): void {
  const leased = turn.host.origins.reduce((sum, o) => sum + o.leased, 0) - (turn.before.get('leased/none') ?? 0)
  noteUsed(turn.desk, turn.sums.fetched ?? 0, (turn.sums['leased/none'] ?? 0) + leased)
}

function noteUsed(desk: Desk, fetched: number, leased: number): void {
  desk.settings.pageBudget?.note(desk.context.partition, { fetched, leased })
}

export function add(turn: Turn, sum: string, n: number): void {
  const value = (turn.sums[sum] ?? 0) + n
  if (value === 0) delete turn.sums[sum]
  else turn.sums[sum] = value
}

/**
 * What a host's queues add to the sums. A URL in a queue says `queued` for itself; whether it waits for a park of its
 * host or origin, or is leased, is told by the host alone, so a park costs the same for ten URLs and five million.
 */
export function hostSums(host: HostRecord): ReadonlyMap<string, number> {
  const sums = new Map<string, number>()
  const put = (bucket: string, n: number): void => {
    if (n !== 0) sums.set(bucket, (sums.get(bucket) ?? 0) + n)
  }
  for (const origin of host.origins) {
    const park = longerPark(host.park, origin.park)
    put('leased/none', origin.leased)
    put(park === null ? 'queued/none' : `parked/${park.reason}`, origin.queued - origin.leased)
  }
  if (host.lease !== null) put('visits', 1)
  return sums
}

/** Nothing of the host is asked for until then. A park that is there and lasts longer stays. */
export function parkHost(turn: Turn, reason: StateReason, until: number, evidence: string): void {
  const { host, now } = turn
  if (host.park !== null && host.park.until >= until) return
  host.park = newPark(reason, until, now, evidence)
  turn.policyChanged = true
  decide(turn, hostUrl(turn), reason, `${evidence}; until ${new Date(until).toISOString()}`, null)
}

export function parkOrigin(turn: Turn, origin: OriginRecord, reason: StateReason, until: number, why: string): void {
  origin.park = newPark(reason, until, turn.now, why)
  turn.policyChanged = true
  decide(turn, `${origin.origin}/robots.txt`, reason, `${why}; until ${new Date(until).toISOString()}`, null)
}

/** One line of `decisions`. Of a host as a whole it is keyed by `hostUrl`. */
export function decide(turn: Turn, key: string, code: string, evidence: string, fetchId: string | null): void {
  const at = turn.now
  const reasons = [{ code, count: 1, examples: [] }]
  const value: Decision = {
    processor: 'schedule',
    fetchId,
    total: 1,
    reasons,
    evidence: brief(evidence),
    at,
  }
  turn.desk.context.forward({ key, value }, 'decisions')
}

/** Evidence is for people, and holds what servers say (a rule, a location): a few hundred characters are kept. */
export function brief(text: string): string {
  return text.length <= maxEvidence ? text : `${text.slice(0, maxEvidence)}…`.toWellFormed()
}
const maxEvidence = 400

/** The root of the host's first origin. */
export function hostUrl(turn: Turn): string {
  return `${turn.host.origins[0]?.origin ?? `http://${turn.name}`}/`
}

export function savePage(turn: Turn, page: PageRecord, hash: Uint8Array): void {
  turn.desk.stores.pages.put(hash, page)
}

/** Saves, and writes to `page-states`: the URL's own state; what its host adds to it is in `host-policies`. */
export function announcePage(turn: Turn, page: PageRecord, hash: Uint8Array): void {
  page.sequence++
  savePage(turn, page, hash)
  const value: PageState = {
    sequence: page.sequence,
    state: page.state,
    reason: page.reason,
    evidence: page.evidence,
    since: page.since,
    next: page.next,
    depth: page.depth,
    importance: 0,
    changeCount: page.changes,
    lastCrawledAt: page.lastFetchedAt,
    httpStatus: page.httpStatus,
    contentHash: page.contentHash,
    simhash: page.simhash,
    duplicateOf: null,
    lastFetchId: page.lastFetchId,
  }
  turn.desk.context.forward({ key: page.url, value }, 'page-states')
}

export function forwardTombstone(turn: Turn, gate: string): void {
  turn.desk.context.forward({ key: tombstoneKey(turn.name, gate), value: null }, 'host-scheduled')
}

/** The earliest moment at which something can be done for the host; null = never, unless something new comes. */
function nextDue(turn: Turn): number | null {
  const { desk, host, name } = turn
  const { frontier } = desk.stores
  const { lease } = host
  if (lease !== null) {
    return lease.mark === null ? lease.deadline + desk.settings.skewMs : turn.now + desk.settings.punctuateMs
  }
  let workAt = Number.POSITIVE_INFINITY
  for (let i = 0; i < host.origins.length; i++) {
    const origin = host.origins[i]!
    const openAt = origin.park?.until ?? 0
    if (origin.queued > 0) workAt = Math.min(workAt, openAt)
    if (origin.blocked > 0 && workAt > openAt) {
      workAt = Math.min(workAt, Math.max(openAt, blockedDueAt(turn, i)))
    }
  }
  if (host.deep > 0 && workAt > 0 && !isEmpty(frontier, keys.deepRange(name, desk.settings.maxDepth))) workAt = 0
  if (host.waiting > 0 && workAt > 0) {
    const range = keys.waitRange(name)
    for (const [key] of frontier.range(range.from, range.to, { limit: 1 })) {
      workAt = Math.min(workAt, keys.waitKeyTime(key))
    }
  }
  if (workAt === Number.POSITIVE_INFINITY) return null
  return Math.max(workAt, host.park?.until ?? 0, readyAt(host, desk.settings))
}

/** When URLs that robots.txt refuses are to be looked at: at once if the rules are newer, else at their time. */
export function blockedDueAt(turn: Turn, origin: number): number {
  const { frontier } = turn.desk.stores
  const { generation } = turn.host.origins[origin]!
  if (!isEmpty(frontier, keys.blockedBefore(turn.name, origin, generation))) return 0
  const range = keys.blockedSince(turn.name, origin, generation)
  for (const [key] of frontier.range(range.from, range.to, { limit: 1 })) {
    return Buffer.from(key.buffer, key.byteOffset, key.byteLength).readUIntBE(key.length - 22, 6)
  }
  return Number.POSITIVE_INFINITY
}

export function isEmpty(store: ScheduleStores['frontier'], range: keys.KeyRange): boolean {
  for (const _ of store.range(range.from, range.to, { limit: 1 })) return false
  return true
}

function setDue(turn: Turn, due: number | null): void {
  const { desk, host, name, dueBefore } = turn
  host.dueAt = due === null ? null : Math.floor(due)
  const key = dueKeyOf(name, host)
  const isSame = key !== null && dueBefore !== null && Buffer.compare(key, dueBefore) === 0
  if (dueBefore !== null && !isSame) desk.stores.due.delete(dueBefore)
  if (key === null || (isSame && host.lease !== null)) return
  desk.stores.due.put(key, Uint8Array.of(host.lease === null ? headClass(turn) : 0))
}

function dueKeyOf(name: string, host: HostRecord): Uint8Array | null {
  return host.dueAt === null ? null : keys.dueKey(host.dueAt, name, host.lease !== null)
}

/** The least class that the host's queues hold. */
function headClass(turn: Turn): number {
  let least = keys.classes - 1
  for (let i = 0; i < turn.host.origins.length; i++) {
    if (turn.host.origins[i]!.queued === 0) continue
    const range = keys.queueRange(turn.name, i)
    for (const [key] of turn.desk.stores.frontier.range(range.from, range.to, {
      limit: 1,
    })) {
      least = Math.min(least, keys.queueKeyClass(key))
    }
  }
  return least
}

function newPark(reason: StateReason, until: number, since: number, evidence: string): Park {
  return { reason, until: Math.ceil(until), since, evidence: brief(evidence) }
}
