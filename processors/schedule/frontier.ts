import type { StateName, StateReason } from '../../schemas/types.ts'
import * as keys from './keys.ts'
import type { PageRecord } from './records.ts'
import { add, announcePage, brief, decide, savePage, type Turn } from './turn.ts'

/*
 * Moves of one URL between the lists of its host. Each move keeps the numbers in the host's record and the sums of the
 * task, and leaves the URL in exactly one list. The caller writes the page's record: `savePage`, or `announcePage`.
 */

/** To the end of its class in the ready queue. Records no change of state by itself. */
export function enqueue(turn: Turn, page: PageRecord, hash: Uint8Array): void {
  detach(turn, page, hash)
  const wasQueued = page.state === 'queued'
  page.place = 'ready'
  page.queueClass = keys.classOf(page.depth)
  page.order = ++turn.host.sequence
  page.state = 'queued'
  page.reason = 'none'
  page.next = null
  if (!wasQueued) {
    page.since = turn.now
    page.evidence = null
  }
  turn.host.origins[page.origin]!.queued++
  attach(turn, page, hash)
}

/** Out of the queue until `next`, in a state that says why. */
export function settleUntil(
  turn: Turn,
  page: PageRecord,
  hash: Uint8Array,
  to: {
    readonly state: StateName
    readonly reason: StateReason
    readonly evidence: string
    readonly next: number
  },
): void {
  detach(turn, page, hash)
  if (page.state !== to.state || page.reason !== to.reason) page.since = turn.now
  page.place = 'wait'
  page.order = 0
  page.state = to.state
  page.reason = to.reason
  page.evidence = brief(to.evidence)
  page.next = Math.ceil(to.next)
  turn.host.waiting++
  add(turn, `${page.state}/${page.reason}`, 1)
  attach(turn, page, hash)
}

/** Refused by robots.txt: until the rules change, at the latest until `next`. */
export function block(turn: Turn, page: PageRecord, hash: Uint8Array, evidence: string, next: number): void {
  detach(turn, page, hash)
  const origin = turn.host.origins[page.origin]!
  if (page.reason !== 'robots') page.since = turn.now
  page.place = 'blocked'
  page.order = origin.generation
  page.state = 'parked'
  page.reason = 'robots'
  page.evidence = evidence
  page.next = next
  origin.blocked++
  add(turn, 'parked/robots', 1)
  attach(turn, page, hash)
}

/** Beyond the greatest depth: until that is raised, or a shorter way is found. */
export function parkDeep(turn: Turn, page: PageRecord, hash: Uint8Array, evidence: string): void {
  detach(turn, page, hash)
  page.place = 'deep'
  page.order = 0
  page.state = 'parked'
  page.reason = 'depth'
  page.evidence = evidence
  page.since = turn.now
  page.next = null
  turn.host.deep++
  add(turn, 'parked/depth', 1)
  attach(turn, page, hash)
}

/** URLs whose time has come go into the queue, a bounded number at a time. */
export function promoteWaiting(turn: Turn, untilMs: number): void {
  if (turn.host.waiting === 0) return
  const range = keys.waitRange(turn.name, Math.floor(untilMs) + 1)
  for (const { page, hash } of take(turn, range, chunk)) {
    enqueue(turn, page, hash)
    savePage(turn, page, hash)
  }
}

/** URLs that are within the greatest depth now: it was raised since they were parked. */
export function releaseDeep(turn: Turn): void {
  if (turn.host.deep === 0) return
  for (const { page, hash } of take(turn, keys.deepRange(turn.name, turn.desk.settings.maxDepth), chunk)) {
    enqueue(turn, page, hash)
    announcePage(turn, page, hash)
  }
}

/**
 * URLs that an earlier version of the robots.txt refused, or whose time has come, are checked against the current one.
 * A bounded number at a time, so a change of rules costs no step more than its share.
 */
export function recheckBlocked(turn: Turn, originIndex: number, untilMs: number, parkMs: number): void {
  const origin = turn.host.origins[originIndex]!
  if (origin.blocked === 0) return
  const older = keys.blockedBefore(turn.name, originIndex, origin.generation)
  let found = take(turn, older, chunk)
  if (found.length === 0) {
    found = take(turn, keys.blockedSince(turn.name, originIndex, origin.generation, Math.floor(untilMs) + 1), chunk)
  }
  for (const { page, hash } of found) {
    if (!refuse(turn, page, hash, parkMs)) {
      enqueue(turn, page, hash)
      announcePage(turn, page, hash)
    }
  }
}

/** Blocks the URL when its origin's robots.txt refuses it, and says by which line. */
export function refuse(turn: Turn, page: PageRecord, hash: Uint8Array, parkMs: number): boolean {
  const origin = turn.host.origins[page.origin]!
  const verdict = turn.desk.rules.check(origin, page.fetchUrl)
  if (verdict.allowed) return false
  const line = verdict.line === null ? '' : ` line ${verdict.line}: ${verdict.rule ?? ''}`
  const evidence = brief(`robots.txt ${origin.robotsVersion}${line}`)
  const isNews = page.reason !== 'robots' || page.evidence !== evidence
  block(turn, page, hash, evidence, turn.now + parkMs)
  if (isNews) {
    announcePage(turn, page, hash)
    decide(turn, page.url, 'robots', evidence, page.lastFetchId)
  } else {
    savePage(turn, page, hash)
  }
  return true
}

export interface Picked {
  readonly page: PageRecord
  readonly hash: Uint8Array
}

/** Every so many picks the oldest URL of a lower class goes first: no class starves. */
export const fairPick = 16

/**
 * The next URLs of the host that may be fetched, at most `size`: by class, then in the order of queueing, over the
 * origins named; every 16th is the oldest of a lower class. They stay in the queue. Those that robots.txt refuses leave
 * it on the way; at most a bounded number is looked at.
 */
export function pickReady(turn: Turn, origins: readonly number[], size: number, parkMs: number): Picked[] {
  const picked: Picked[] = []
  const taken = new Set<number>()
  const consider = (entry: QueueEntry): void => {
    taken.add(entry.order)
    const page = turn.desk.stores.pages.get(entry.hash)
    if (page === undefined) {
      turn.desk.stores.frontier.delete(entry.key)
      turn.host.origins[entry.origin]!.queued--
      return
    }
    if (refuse(turn, page, entry.hash, parkMs)) return
    picked.push({ page, hash: entry.hash })
    turn.host.picks++
  }
  for (let looked = 0; looked < maxLooks && picked.length < size; ) {
    const heads = headsOf(turn, origins, Math.max(size - picked.length, 64), taken)
    if (heads.length === 0) break
    for (let i = 0; i < heads.length && picked.length < size && looked < maxLooks; i++) {
      const head = heads[i]!
      if (taken.has(head.order)) continue
      looked++
      const fair =
        (turn.host.picks + 1) % fairPick === 0 ? oldestBelow(turn, origins, head.queueClass, taken) : undefined
      if (fair !== undefined) {
        consider(fair)
        i--
      } else {
        consider(head)
      }
    }
  }
  return picked
}

interface QueueEntry {
  readonly key: Uint8Array
  readonly origin: number
  readonly queueClass: number
  readonly order: number
  readonly hash: Uint8Array
}

const chunk = 64
const maxLooks = 512

/** The first entries over several origins' queues, without those taken already. */
function headsOf(turn: Turn, origins: readonly number[], limit: number, taken: ReadonlySet<number>): QueueEntry[] {
  const heads: QueueEntry[] = []
  for (const origin of origins) {
    for (const entry of entriesOf(turn, origin, keys.queueRange(turn.name, origin), limit + taken.size)) {
      if (!taken.has(entry.order)) heads.push(entry)
    }
  }
  return heads.sort((a, b) => a.queueClass - b.queueClass || a.order - b.order).slice(0, limit)
}

/** Of the classes below `queueClass`, the entry that was queued first. */
function oldestBelow(
  turn: Turn,
  origins: readonly number[],
  queueClass: number,
  taken: ReadonlySet<number>,
): QueueEntry | undefined {
  let oldest: QueueEntry | undefined
  for (const origin of origins) {
    for (let c = queueClass + 1; c < keys.classes; c++) {
      const [head] = entriesOf(turn, origin, keys.queueRange(turn.name, origin, c, 1), 1)
      if (head !== undefined && !taken.has(head.order) && (oldest === undefined || head.order < oldest.order))
        oldest = head
    }
  }
  return oldest
}

function entriesOf(turn: Turn, origin: number, range: keys.KeyRange, limit: number): QueueEntry[] {
  const entries: QueueEntry[] = []
  for (const [key, hash] of turn.desk.stores.frontier.range(range.from, range.to, { limit })) {
    entries.push({
      key,
      origin,
      queueClass: keys.queueKeyClass(key),
      order: keys.queueKeyOrder(key),
      hash,
    })
  }
  return entries
}

/** The URLs of a range, read before anything is written. An entry without a record is dropped. */
function take(turn: Turn, range: keys.KeyRange, limit: number): Picked[] {
  const found: Picked[] = []
  const { frontier, pages } = turn.desk.stores
  for (const [key] of frontier.range(range.from, range.to, { limit })) {
    const hash = keys.keyHash(key)
    const page = pages.get(hash)
    if (page !== undefined) found.push({ page, hash })
  }
  return found
}

function attach(turn: Turn, page: PageRecord, hash: Uint8Array): void {
  turn.desk.stores.frontier.put(keys.placeKey(turn.name, hash, page)!, page.place === 'ready' ? hash : mark)
}

const mark = Uint8Array.of(1)

function detach(turn: Turn, page: PageRecord, hash: Uint8Array): void {
  const key = keys.placeKey(turn.name, hash, page)
  if (key === undefined) return
  turn.desk.stores.frontier.delete(key)
  const origin = turn.host.origins[page.origin]!
  switch (page.place) {
    case 'ready':
      origin.queued--
      return
    case 'blocked':
      origin.blocked--
      break
    case 'wait':
      turn.host.waiting--
      break
    default:
      turn.host.deep--
  }
  add(turn, `${page.state}/${page.reason}`, -1)
}
