/**
 * A whole crawl under a virtual clock against servers that are one function: for behaviour that takes hours, and for
 * what has to be exactly so.
 */
import assert from 'node:assert/strict'
import { STATUS_CODES } from 'node:http'
import { createMemoryArchive } from '../../../connectors/archive/memory.ts'
import { createVirtualClock, type VirtualClock } from '../../../connectors/clock/virtual.ts'
import type { DnsResult } from '../../../connectors/dns/types.ts'
import type { HttpClient, HttpError, HttpOutcome, HttpRequest, Truncation } from '../../../connectors/http/types.ts'
import { createCanonicalize } from '../../../processors/canonicalize/canonicalize.ts'
import { createDedupe } from '../../../processors/dedupe.ts'
import { createFetch } from '../../../processors/fetch/fetch.ts'
import { parsePage } from '../../../processors/parse/page.ts'
import type { ScheduleOptions } from '../../../processors/schedule/options.ts'
import { isIdle, parkedByReason, readCounts, type Tasks } from '../../../processors/schedule/read.ts'
import { createSchedule } from '../../../processors/schedule/schedule.ts'
import { openStores } from '../../../processors/schedule/stores.ts'
import { stringSerde, topicSerde } from '../../../schemas/codec.ts'
import type { Control, DiscoveredUrls } from '../../../schemas/types.ts'
import { crawlApplications } from '../../../topology/crawl.ts'
import { readSeeds, seedRecords } from '../../../topology/seeds.ts'
import { TopologyTestDriver } from '../../../topology/streams/driver.ts'
import type { KeyValueStore } from '../../../topology/streams/types.ts'
import { topicName, topicSpecs } from '../../../topology/topics.ts'
import { audit, type Records, recordsOf, statesOf } from './audit.ts'

export interface Ask {
  /** Host with a port that is not the scheme's own. */
  readonly host: string
  /** Path and query. */
  readonly path: string
  /** How many requests for this URL there were, this one included. */
  readonly nth: number
  /** Since the crawl's start. */
  readonly atMs: number
  header(name: string): string | undefined
}

/** Null, or a status alone: without body. */
export interface Answer {
  readonly status?: number
  readonly headers?: { readonly [name: string]: string }
  readonly body?: string | Buffer
  readonly takesMs?: number
  /** In place of a response. */
  readonly error?: HttpError
  /** The body does not come whole. */
  readonly cut?: { readonly truncated: Truncation; readonly error: HttpError }
}

export interface Seen {
  readonly url: string
  readonly host: string
  readonly startMs: number
  readonly endMs: number
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
}

export interface ScriptOptions {
  readonly seeds: readonly string[]
  readonly answer: (ask: Ask) => Answer | null
  readonly scope?: 'host' | 'domain' | 'any'
  readonly delayMs?: number
  readonly resolve?: (host: string, atMs: number) => DnsResult
  readonly schedule?: Partial<ScheduleOptions>
  /** How often schedule looks what is due; longer than its default, since an hour of virtual time costs by it. */
  readonly punctuateMs?: number
}

const crawl = 'scripted'
const partitions = 4
export const startMs = Date.UTC(2026, 0, 1)
export const minuteMs = 60_000
export const hourMs = 60 * minuteMs
export const dayMs = 24 * hourMs

/** An HTML page with these links. */
export function page(...hrefs: readonly string[]): Answer {
  const links = hrefs.map((href) => `<a href="${href}">${href}</a>`).join('\n')
  return html(`<!doctype html><title>A page</title><p>Some words of it.</p>${links}`)
}
export function html(body: string | Buffer, headers: Answer['headers'] = {}): Answer {
  return { headers: { 'content-type': 'text/html', ...headers }, body }
}
export function redirect(location: string, status = 301): Answer {
  return { status, headers: { location } }
}
export function robots(...lines: readonly string[]): Answer {
  return { headers: { 'content-type': 'text/plain' }, body: `${lines.join('\n')}\n` }
}

/** One crawl: `run` goes on until it is idle, or for the time given. */
export class Script {
  readonly clock: VirtualClock = createVirtualClock(startMs)
  readonly seen: Seen[] = []
  readonly driver: TopologyTestDriver
  readonly records: Records
  readonly tasks: Tasks
  readonly #delayMs: number

  constructor(options: ScriptOptions) {
    const { delayMs = 1000 } = options
    this.#delayMs = delayMs
    const topics = topicSpecs(crawl, partitions)
    const resolve = options.resolve ?? (() => ({ kind: 'ok', addresses: ['192.0.2.1'], ttlMs: dayMs }))
    this.driver = new TopologyTestDriver({
      clock: this.clock,
      startWallMs: startMs,
      topics,
      deadLetterTopic: topicName(crawl, 'dead-letters'),
      applications: crawlApplications(crawl, {
        canonicalize: createCanonicalize({ discoveredTopic: topicName(crawl, 'discovered-urls') }),
        dedupe: createDedupe(),
        schedule: createSchedule({
          fetchedTopic: topicName(crawl, 'fetched'),
          robotsToken: 'weir',
          minDelayMs: delayMs,
          punctuateMs: options.punctuateMs ?? 500,
          ...options.schedule,
        }),
        fetch: createFetch({
          http: createScriptedClient(this.clock, this.seen, options.answer),
          resolver: {
            resolve: (host, done) => {
              this.clock.setTimer(5, () => done(resolve(host, this.clock.monotonicMs())))
            },
            close() {},
          },
          archive: createMemoryArchive({ crawl }),
          parse: parsePage,
          userAgent: 'weir/0.1 (+mailto:test@example.org)',
          agentToken: 'weir',
          allowPrivate: true,
        }),
      }).map((a) => (a.guarantee === 'ack_on_take' ? { ...a, maxInFlight: 1000 } : a)),
    })
    const { driver } = this
    this.records = {
      *raw(topic) {
        for (let p = 0; p < partitions; p++) {
          for (const { key, value, timestamp } of driver.log.records(topicName(crawl, topic), p)) {
            yield { partition: p, timestamp, key: key!, value }
          }
        }
      },
    }
    this.tasks = Array.from({ length: partitions }, (_, p) =>
      openStores(
        (name) => driver.getKeyValueStore(`${crawl}-schedule`, name, p) as unknown as KeyValueStore<never, never>,
      ),
    )
    this.seed(options.seeds, options.scope ?? 'host')
  }

  seed(urls: readonly string[], scope: 'host' | 'domain' | 'any'): void {
    const records = seedRecords(readSeeds(urls, 2048), { scope }, startMs)
    const all = (_key: string, _value: unknown, count: number) => Array.from({ length: count }, (_, i) => i)
    const at = this.clock.nowMs()
    const controls = this.driver.createInputTopic(
      topicName(crawl, 'controls'),
      stringSerde,
      topicSerde<Control>('controls'),
      all,
    )
    for (const { key, value } of records.controls) controls.pipeInput(key, value, at)
    this.driver
      .createInputTopic(topicName(crawl, 'discovered-urls'), stringSerde, topicSerde<DiscoveredUrls>('discovered-urls'))
      .pipeInput(records.discovered.key, records.discovered.value, at)
  }

  /** Until nothing is due within `patienceMs`; fails after `maxMs`. Then audits. Gives the time it took. */
  run({ patienceMs = 2 * minuteMs, maxMs = 2 * dayMs, stepMs = 1000 } = {}): number {
    const began = this.clock.monotonicMs()
    do {
      this.driver.advanceWallClockTime(stepMs)
      assert.ok(this.clock.monotonicMs() - began <= maxMs, `not idle after ${maxMs} ms: ${this.text()}`)
    } while (!isIdle(this.tasks, this.clock.nowMs(), patienceMs))
    assert.ok(this.driver.settled(), 'idle, and yet not settled')
    this.audit()
    const { leased, visits } = readCounts(this.tasks)
    assert.deepEqual({ leased, visits }, { leased: 0, visits: 0 })
    return this.clock.monotonicMs() - began
  }

  advance(ms: number): void {
    this.driver.advanceWallClockTime(ms)
  }

  audit(): void {
    audit(this.records, this.tasks)
    this.#auditGaps()
  }

  /** URL → `state/reason`. */
  states(): { [url: string]: string } {
    return Object.fromEntries([...statesOf(this.tasks)].sort())
  }
  state(url: string): string | undefined {
    return statesOf(this.tasks).get(url)
  }
  counts(): { [state: string]: number } {
    return { ...readCounts(this.tasks).states }
  }
  parked() {
    return parkedByReason(this.tasks)
  }
  /** URLs asked for, in order, robots.txt left out unless wanted. */
  asked({ robots = false } = {}): string[] {
    return this.seen.map(({ url }) => url).filter((url) => robots || !url.endsWith('/robots.txt'))
  }
  times(url: string): number {
    return this.seen.filter((s) => s.url === url).length
  }
  /** Codes of decisions about a key, with processor. */
  decisions(key: string): string[] {
    return recordsOf(this.records, 'decisions')
      .filter((r) => r.key === key)
      .flatMap(({ value }) => value.reasons.map(({ code }) => `${value.processor}:${code}`))
  }
  text(): string {
    return JSON.stringify({ counts: this.counts(), parked: this.parked(), requests: this.seen.length })
  }

  /** One request at a time for a host, one delay between. */
  #auditGaps(): void {
    const ended = new Map<string, Seen>()
    for (const request of this.seen) {
      const last = ended.get(request.host)
      if (last !== undefined) {
        const gap = request.startMs - last.endMs
        assert.ok(gap >= this.#delayMs, `${request.url} came ${gap} ms after the end of ${last.url}`)
      }
      ended.set(request.host, request)
    }
  }
}

function createScriptedClient(clock: VirtualClock, seen: Seen[], answer: ScriptOptions['answer']): HttpClient {
  const nth = new Map<string, number>()
  return {
    request(request, done) {
      let timer = clock.setTimer(2, () => {
        if (!request.mayStart()) return done({ kind: 'not-started' })
        const url = new URL(request.url)
        const n = (nth.get(request.url) ?? 0) + 1
        nth.set(request.url, n)
        const headers = new Map(request.headers)
        const startedMonotonicMs = clock.monotonicMs()
        const startedAtMs = clock.nowMs()
        const given = answer({
          host: url.host,
          path: url.pathname + url.search,
          nth: n,
          atMs: startedMonotonicMs,
          header: (name) => headers.get(name),
        }) ?? { status: 404 }
        const takesMs = given.takesMs ?? 20
        const entry: Seen = {
          url: request.url,
          host: url.hostname,
          startMs: startedMonotonicMs,
          endMs: startedMonotonicMs + takesMs,
          status: given.error === undefined ? (given.status ?? 200) : 0,
          headers,
        }
        seen.push(entry)
        timer = clock.setTimer(takesMs, () => {
          const times = {
            startedAtMs,
            endedAtMs: clock.nowMs(),
            startedMonotonicMs,
            endedMonotonicMs: clock.monotonicMs(),
            headersMs: takesMs,
          }
          done(outcomeOf(request, given, times))
        })
      })
      return { cancel: () => timer.cancel() }
    },
    async close() {},
  }
}

type Times = Extract<HttpOutcome, { kind: 'response' }>['times']

function outcomeOf(request: HttpRequest, given: Answer, times: Times): HttpOutcome {
  if (given.error !== undefined) {
    const written = given.error !== 'refused' && given.error !== 'unreachable'
    const message = `fetching ${request.url}: ${given.error}`
    return { kind: 'error', error: given.error, message, written, times }
  }
  const status = given.status ?? 200
  const headers = Object.entries(given.headers ?? {})
  const type = headers.find(([name]) => name === 'content-type')?.[1] ?? null
  const accepted = request.accepts(type)
  const whole = Buffer.from(accepted ? (given.body ?? '') : '')
  const isOver = whole.length > request.maxBodyBytes
  const body = isOver ? whole.subarray(0, request.maxBodyBytes) : whole
  return {
    kind: 'response',
    status,
    statusText: STATUS_CODES[status] ?? '',
    httpVersion: '1.1',
    headers,
    rawBody: body,
    body,
    truncated: given.cut?.truncated ?? (accepted ? (isOver ? 'length' : 'none') : 'type'),
    bodyError: given.cut?.error ?? null,
    times,
    requestHead: Buffer.from(`GET ${new URL(request.url).pathname} HTTP/1.1\r\n\r\n`),
  }
}
