import type { Log } from '../connectors/log/types.ts'
import { type StoredRule, storedRules } from '../processors/canonicalize/rules-store.ts'
import { explainScope } from '../processors/canonicalize/scope.ts'
import { canonicalizeUrl } from '../processors/canonicalize/url.ts'
import { dueKeyHost } from '../processors/schedule/keys.ts'
import {
  explainHost,
  explainUrl,
  type HostExplanation,
  type ParkedReason,
  parkedByReason,
  readCounts,
  type Tasks,
} from '../processors/schedule/read.ts'
import { openStores } from '../processors/schedule/stores.ts'
import { siteOf } from '../processors/site.ts'
import { stringSerde, topicSerde } from '../schemas/codec.ts'
import { partitionOf } from '../schemas/hash.ts'
import type { Decision, Fetched } from '../schemas/types.ts'
import type { ControlCalls } from './control.ts'
import { CommandError } from './errors.ts'
import type { Settings } from './settings.ts'
import type { ReadOnlyKeyValueStore } from './streams/store.ts'
import type { KeyValueStore } from './streams/types.ts'
import { type TopicName, topicName } from './topics.ts'

/** What the command line looks at: a crawl that runs in this process, or one that lies still on disk. */
export interface CrawlView {
  readonly crawl: string
  readonly partitions: number
  readonly log: Log
  readonly settings: Pick<Settings, 'delayMs' | 'maxUrlLength'>
  nowMs(): number
  /** Committed entries of a task's store; undefined when that task is not here. */
  store<K, V>(
    application: 'canonicalize' | 'schedule',
    partition: number,
    name: string,
  ): ReadOnlyKeyValueStore<K, V> | undefined
}

/** The read-only stores of every task of schedule. */
export function scheduleTasks(view: CrawlView): Tasks {
  const tasks: Tasks[number][] = []
  for (let p = 0; p < view.partitions; p++) {
    if (view.store('schedule', p, 'counts') === undefined) continue
    // Nobody writes through what is read here.
    tasks.push(openStores((name) => view.store('schedule', p, name) as unknown as KeyValueStore<never, never>))
  }
  return tasks
}

export interface ParkedUrls extends ParkedReason {
  /** A host that is parked for this reason as a whole, and why: the one that is looked at soonest. */
  readonly example: string | null
}

export function parkedWithExample(tasks: Tasks): ParkedUrls[] {
  const examples = new Map<string, string>()
  for (const task of tasks) {
    for (const [key] of task.due.range(undefined, undefined, { limit: maxExampleHosts })) {
      const name = dueKeyHost(key)
      const host = task.hosts.get(name)
      for (const park of [host?.park, ...(host?.origins.map((origin) => origin.park) ?? [])]) {
        if (park && !examples.has(park.reason)) examples.set(park.reason, `${name}: ${park.evidence}`)
      }
    }
  }
  return parkedByReason(tasks).map((parked) => ({ ...parked, example: examples.get(parked.reason) ?? null }))
}
const maxExampleHosts = 1000

export interface HistoryEntry {
  readonly at: string
  readonly what: string
  readonly fetchId: string | null
  readonly status: number | null
}
export interface Explanation {
  readonly url: string
  readonly key: string
  readonly state: string
  readonly reason: string
  readonly since: string | null
  readonly next: string | null
  readonly evidence: string | null
  readonly history: readonly HistoryEntry[]
}

export type Inspection = ReturnType<typeof inspectionCalls>

/** The questions, each with one text as its argument; the running process answers the same ones over HTTP. */
export function inspectionCalls(view: CrawlView) {
  return {
    status: async () => stillStatus(view),
    explain: (url: string) => explainPage(view, url),
    host: async (host: string) => explainHostOf(view, host),
    page: (url: string) => lastResponse(view, url),
    'dead-letters': () => deadLetters(view),
  } satisfies ControlCalls
}

function stillStatus(view: CrawlView) {
  const tasks = scheduleTasks(view)
  const counts = readCounts(tasks)
  return {
    crawl: view.crawl,
    running: false,
    states: counts.states,
    pages: counts.fetched,
    requests: counts.requests,
    queued: counts.queued,
    inFlight: 0,
    hosts: counts.hosts,
    pagesPerSec: 0,
    lag: 0,
    parked: parkedWithExample(tasks),
  }
}

async function explainPage(view: CrawlView, url: string): Promise<Explanation> {
  const target = canonicalizeUrl(url, undefined, { maxUrlLength: view.settings.maxUrlLength })
  const nothing = { since: null, next: null, history: [] }
  if ('error' in target) {
    return { url, key: url, state: 'refused', reason: target.error.code, evidence: target.error.message, ...nothing }
  }
  const { key } = target
  const found = explainUrl(scheduleTasks(view), key)
  if (found === undefined) {
    const scope = explainScope(rulesOf(view), key)
    const state = scope.admitted ? 'unknown' : 'refused'
    const evidence = scope.admitted ? `no link to it was found; it would be admitted: ${scope.message}` : scope.message
    return { url, key, state, reason: scope.admitted ? 'not-discovered' : scope.code, evidence, ...nothing }
  }
  return {
    url,
    key,
    state: found.state,
    reason: found.reason,
    since: iso(found.since),
    next: iso(found.next),
    evidence: found.evidence,
    history: await historyOf(view, key, found.host),
  }
}

export type ExplainedHost = ReturnType<typeof explainHostOf>

function explainHostOf(view: CrawlView, host: string) {
  const maxDelayMs = 60_000
  const found = explainHost(scheduleTasks(view), host.toLowerCase(), { minDelayMs: view.settings.delayMs, maxDelayMs })
  if (found === undefined) {
    throw new CommandError('unknown-host', 1, `explaining ${host}: no URL of this host was admitted`)
  }
  return {
    host: found.host,
    site: found.site,
    delayMs: found.delay.delayMs,
    delayReason: found.delay.reason,
    address: found.address,
    gate: found.gate,
    parked: parkOf(found.park),
    visit:
      found.lease === null
        ? null
        : { leaseId: found.lease.leaseId, kind: found.lease.visitKind, urls: found.lease.size },
    lastEndedAt: iso(found.lastEndedAt),
    next: iso(found.dueAt),
    pages: found.pagesFetched,
    origins: found.origins.map((o) => ({
      origin: o.origin,
      parked: parkOf(o.park),
      robots: o.verdict,
      robotsVersion: o.robotsVersion,
      httpStatus: o.httpStatus === 0 ? null : o.httpStatus,
      expiresAt: iso(o.expiresAt === 0 ? null : o.expiresAt),
      crawlDelayMs: o.crawlDelayMs,
      queued: o.queued,
      blockedByRobots: o.blocked,
    })),
  }
}

type Park = NonNullable<HostExplanation['park']>

function parkOf(park: Park | null) {
  if (park === null) return null
  const { reason, evidence, since, until } = park
  return { reason, evidence, since: iso(since), until: iso(until) }
}

async function historyOf(view: CrawlView, key: string, host: string): Promise<HistoryEntry[]> {
  const partition = partitionOf(siteOf(host), view.partitions)
  const entries: (HistoryEntry & { order: number })[] = []
  for await (const { value } of recordsOf<Fetched>(view, 'fetched', partition, key)) {
    entries.push({
      order: value.endedAt,
      at: new Date(value.startedAt === 0 ? value.endedAt : value.startedAt).toISOString(),
      what: outcomeText(value),
      fetchId: value.fetchId,
      status: value.status === 0 ? null : value.status,
    })
  }
  for await (const { value } of recordsOf<Decision>(view, 'decisions', partition, key)) {
    if (value.processor !== 'schedule' && value.processor !== 'parse') continue
    const codes = value.reasons.map((r) => r.code).join(', ')
    entries.push({
      order: value.at,
      at: new Date(value.at).toISOString(),
      what: `${value.processor}: ${codes}${value.evidence === null ? '' : ` (${value.evidence})`}`,
      fetchId: value.fetchId,
      status: null,
    })
  }
  return entries.sort((a, b) => a.order - b.order).map(({ order: _, ...entry }) => entry)
}

function outcomeText(value: Fetched): string {
  if (value.error !== 'none' && value.status === 0) return `not answered: ${value.errorMessage ?? value.error}`
  const to = value.location === null ? '' : ` to ${value.location}`
  const cut = value.truncated === 'none' ? '' : `, cut (${value.truncated})`
  const revisit = value.revisit ? ', unchanged' : ''
  return `answered ${value.status}${to}, ${value.bodyBytes} bytes${cut}${revisit}`
}

export interface StoredPage {
  readonly key: string
  readonly fetched: Fetched
}

/** The last response whose body is in the archive. */
async function lastResponse(view: CrawlView, url: string): Promise<StoredPage> {
  const target = canonicalizeUrl(url, undefined, { maxUrlLength: view.settings.maxUrlLength })
  if ('error' in target) throw new CommandError('url', 2, `looking up ${url}: ${target.error.message}`)
  let last: Fetched | undefined
  const partition = partitionOf(siteOf(target.host), view.partitions)
  for await (const { value } of recordsOf<Fetched>(view, 'fetched', partition, target.key)) {
    if (value.archive !== null && !value.revisit) last = value
  }
  if (last === undefined) {
    throw new CommandError('not-stored', 1, `looking up ${target.key}: no response of it is stored; see weir explain`)
  }
  return { key: target.key, fetched: last }
}

export interface DeadLetter {
  readonly id: string
  readonly topic: string
  readonly partition: number
  readonly offset: number
  readonly error: string
  readonly message: string
  readonly key: string
  /** Base64. */
  readonly value: string | null
}

async function deadLetters(view: CrawlView): Promise<DeadLetter[]> {
  const letters: DeadLetter[] = []
  for (let p = 0; p < view.partitions; p++) {
    for await (const batch of batchesOf(view, 'dead-letters', p)) {
      for (let i = 0; i < batch.count; i++) {
        const headers = new Map(batch.headers(i).map(([name, value]) => [name, Buffer.from(value).toString('utf8')]))
        const header = (name: string) => headers.get(`__streams.errors.${name}`) ?? ''
        const value = batch.value(i)
        letters.push({
          id: `${p}:${batch.offset(i)}`,
          topic: header('topic'),
          partition: Number(header('partition')),
          offset: Number(header('offset')),
          error: header('exception'),
          message: header('message'),
          key: Buffer.from(batch.key(i) ?? []).toString('utf8'),
          value: value === null ? null : Buffer.from(value).toString('base64'),
        })
      }
    }
  }
  return letters
}

function* rulesOf(view: CrawlView) {
  for (let p = 0; p < view.partitions; p++) {
    const store = view.store<string, StoredRule>('canonicalize', p, 'rules')
    // Rules are in every partition; one is enough.
    if (store !== undefined) return yield* storedRules(store)
  }
}

async function* recordsOf<V>(view: CrawlView, topic: TopicName, partition: number, key: string) {
  const wanted = Buffer.from(stringSerde.serialize(key))
  const serde = topicSerde<V>(topic)
  for await (const batch of batchesOf(view, topic, partition)) {
    for (let i = 0; i < batch.count; i++) {
      const bytes = batch.key(i)
      const value = batch.value(i)
      if (bytes === null || value === null || !wanted.equals(bytes)) continue
      try {
        yield { offset: batch.offset(i), value: serde.deserialize(value) }
      } catch {
        // A record that nobody can read is in the dead letters; here it is passed over.
      }
    }
  }
}

async function* batchesOf(view: CrawlView, topic: TopicName, partition: number) {
  const p = view.log.partition(topicName(view.crawl, topic), partition)
  for (let next = 0; ; ) {
    const batch = await view.log.read(p, next, 1 << 20, 'stable')
    if (batch === null) return
    yield batch
    next = batch.nextOffset
  }
}

function iso(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}
