import type { HostPolicy, StateName, StateReason } from '../../schemas/types.ts'
import { type Delay, delayOf } from './delay.ts'
import * as keys from './keys.ts'
import { indexInLease } from './lease.ts'
import { defaults, type PageBudget, type PagesUsed } from './options.ts'
import { type HostRecord, isOpen, type Lease, longerPark, type PageRecord, type Park } from './records.ts'
import type { ReadOnlyScheduleStores } from './stores.ts'
import { allKey } from './turn.ts'

/*
 * What others may read of the stores of all tasks of schedule: the command line, the control plane, the done rule.
 * Each argument `tasks` has the read-only stores of every task there is.
 */
export type Tasks = readonly ReadOnlyScheduleStores[]

export interface Counts {
  /** URLs by `<state>/<reason>`; their sum is `admitted`. */
  readonly states: { readonly [stateAndReason: string]: number }
  readonly admitted: number
  readonly queued: number
  readonly leased: number
  readonly parked: number
  readonly known: number
  readonly gone: number
  /** Visits that are out. */
  readonly visits: number
  readonly hosts: number
  /** Pages that answered, whatever they said. */
  readonly fetched: number
  /** Requests that reached a server, robots.txt included. */
  readonly requests: number
}

/** From one small record a task. */
export function readCounts(tasks: Tasks): Counts {
  const states: { [name: string]: number } = {}
  const byState = { queued: 0, leased: 0, parked: 0, known: 0, gone: 0 }
  const others = { visits: 0, hosts: 0, fetched: 0, requests: 0 }
  let admitted = 0
  for (const task of tasks) {
    for (const [name, n] of Object.entries(task.counts.get(allKey)?.sums ?? {})) {
      const slash = name.indexOf('/')
      if (slash < 0) {
        if (name in others) others[name as keyof typeof others] += n
        continue
      }
      states[name] = (states[name] ?? 0) + n
      admitted += n
      byState[name.slice(0, slash) as StateName] += n
    }
  }
  return { states, admitted, ...byState, ...others }
}

/**
 * The budget of a whole crawl. `read` gives the committed stores of all tasks, by partition: they are asked for tasks
 * that have not said anything in this process, which are those that run elsewhere or have not begun.
 */
export function createPageBudget(maxPages: number, read: () => Tasks): PageBudget {
  const noted = new Map<number, PagesUsed>()
  const sum = (what: (used: PagesUsed) => number): number =>
    read().reduce((total, task, partition) => total + what(noted.get(partition) ?? readCounts([task])), 0)
  return {
    note(partition, used) {
      noted.set(partition, used)
    },
    leasable: () => maxPages - sum((used) => used.fetched + used.leased),
    exhausted: () => sum((used) => used.fetched) >= maxPages,
  }
}

export interface EffectiveState {
  readonly state: StateName
  readonly reason: StateReason
  readonly since: number
  /** When it is asked for, or looked at, next; null = not before something happens. */
  readonly next: number | null
  readonly evidence: string | null
}

/**
 * The state of a URL: its own, but in the ready queue what its host says: leased, when the visit that is out has it and
 * no outcome of it yet (`leased`: the record at `leaseKey`); parked, while its host or origin is; else queued.
 */
export function effectiveState(page: PageRecord, host: HostRecord, leased: Uint8Array | undefined): EffectiveState {
  const { state, reason, since, next, evidence } = page
  if (page.place !== 'ready') return { state, reason, since, next, evidence }
  const { lease } = host
  if (lease !== null && isOpen(lease, indexInLease(leased, keys.pageKey(page.url)))) {
    return { state: 'leased', reason: 'none', since: lease.issuedAt, next: null, evidence: lease.leaseId }
  }
  const park = longerPark(host.park, host.origins[page.origin]?.park ?? null)
  if (park !== null) {
    return { state: 'parked', reason: park.reason, since: park.since, next: park.until, evidence: park.evidence }
  }
  return { state, reason, since, next: host.dueAt, evidence }
}

export interface UrlExplanation extends EffectiveState {
  readonly url: string
  readonly host: string
  /** All that is stored of it. */
  readonly page: PageRecord
}

/** `url` is the canonical key. Undefined: never admitted. */
export function explainUrl(tasks: Tasks, url: string): UrlExplanation | undefined {
  const hash = keys.pageKey(url)
  for (const task of tasks) {
    const page = task.pages.get(hash)
    if (page === undefined) continue
    const host = task.hosts.get(page.host)
    if (host === undefined) continue
    const leased = task.frontier.get(keys.leaseKey(page.host))
    return { url: page.url, host: page.host, ...effectiveState(page, host, leased), page }
  }
  return undefined
}

export interface HostExplanation {
  readonly host: string
  readonly site: string
  readonly delay: Delay
  readonly park: Park | null
  readonly lease: Lease | null
  readonly address: string | null
  readonly gate: string | null
  readonly dueAt: number | null
  readonly lastEndedAt: number | null
  readonly pagesFetched: number
  readonly origins: readonly (Pick<HostRecord['origins'][number], 'origin' | 'queued' | 'leased' | 'blocked' | 'park'> &
    Omit<HostPolicy['origins'][number], 'rules' | 'verdict'> & { readonly verdict: string })[]
}

/** `settings`: the crawl's own delays, where they are not the defaults. */
export function explainHost(
  tasks: Tasks,
  host: string,
  settings: { readonly minDelayMs: number; readonly maxDelayMs: number } = defaults,
): HostExplanation | undefined {
  for (const task of tasks) {
    const record = task.hosts.get(host)
    if (record === undefined) continue
    const { site, park, lease, address, gate, dueAt, lastEndedAt, pagesFetched, origins } = record
    const delay = delayOf(record, settings)
    return { host, site, delay, park, lease, address, gate, dueAt, lastEndedAt, pagesFetched, origins }
  }
  return undefined
}

/** The earliest moment at which any host may be looked at; null = no host waits for any. */
export function nextDueMs(tasks: Tasks): number | null {
  let earliest: number | null = null
  for (const task of tasks) {
    for (const { from, to } of [keys.dueRange(false), keys.dueRange(true)]) {
      for (const [key] of task.due.range(from, to, { limit: 1 })) {
        const time = keys.dueKeyTime(key)
        if (earliest === null || time < earliest) earliest = time
      }
    }
  }
  return earliest
}

/**
 * Whether schedule has nothing left to do that is worth waiting for: no visit is out, no URL is in a queue (it only
 * waits for its host's delay, however long that is), and no host is due within `patienceMs`. What is parked or known and
 * due later keeps nothing alive.
 */
export function isIdle(tasks: Tasks, nowMs: number, patienceMs: number): boolean {
  const { visits, queued } = readCounts(tasks)
  const next = nextDueMs(tasks)
  return visits === 0 && (next === null || (queued === 0 && next > nowMs + patienceMs))
}

export interface ParkedReason {
  readonly reason: StateReason
  readonly count: number
  /** The earliest next try; null = none is set (depth), or it is beyond what was looked at. */
  readonly next: number | null
}

/** Parked URLs by reason, most first. Times are looked up in the `maxHosts` hosts that are due soonest. */
export function parkedByReason(tasks: Tasks, maxHosts = 10_000): ParkedReason[] {
  const next = new Map<string, number>()
  const note = (reason: string, at: number | null): void => {
    if (at !== null && at < (next.get(reason) ?? Number.POSITIVE_INFINITY)) next.set(reason, at)
  }
  for (const task of tasks) {
    for (const [key] of task.due.range(undefined, undefined, { limit: maxHosts })) {
      noteParks(task, keys.dueKeyHost(key), note)
    }
  }
  const reasons: ParkedReason[] = []
  for (const [name, count] of Object.entries(readCounts(tasks).states)) {
    if (!name.startsWith('parked/')) continue
    const reason = name.slice('parked/'.length) as StateReason
    reasons.push({ reason, count, next: next.get(reason) ?? null })
  }
  return reasons.sort((a, b) => b.count - a.count || (a.reason < b.reason ? -1 : 1))
}

const urlsAHost = 32

function noteParks(
  task: ReadOnlyScheduleStores,
  name: string,
  note: (reason: string, at: number | null) => void,
): void {
  const host = task.hosts.get(name)
  if (host === undefined) return
  const ranges: keys.KeyRange[] = host.waiting > 0 ? [keys.waitRange(name)] : []
  host.origins.forEach((origin, i) => {
    const park = longerPark(host.park, origin.park)
    if (park !== null && origin.queued > origin.leased) note(park.reason, park.until)
    if (origin.blocked > 0) ranges.push(keys.blockedSince(name, i, origin.generation))
  })
  for (const range of ranges) {
    for (const [key] of task.frontier.range(range.from, range.to, { limit: urlsAHost })) {
      const page = task.pages.get(keys.keyHash(key))
      if (page?.state === 'parked') note(page.reason, page.next)
    }
  }
}
