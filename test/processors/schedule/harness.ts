import assert from 'node:assert/strict'
import type { TopicSpec } from '../../../connectors/log/types.ts'
import { hostScheduledPartitioner, visitKeySerde } from '../../../processors/schedule/gate.ts'
import { leaseKey } from '../../../processors/schedule/keys.ts'
import type { ScheduleOptions } from '../../../processors/schedule/options.ts'
import { effectiveState, explainUrl, nextDueMs, readCounts, type Tasks } from '../../../processors/schedule/read.ts'
import type { PageRecord } from '../../../processors/schedule/records.ts'
import { createSchedule } from '../../../processors/schedule/schedule.ts'
import { openStores, type ReadOnlyScheduleStores, scheduleStores } from '../../../processors/schedule/stores.ts'
import { bytesSerde, stringSerde, topicSerde } from '../../../schemas/codec.ts'
import type { Candidate, Decision, Fetched, HostPolicy, PageState, Visit, VisitEntry } from '../../../schemas/types.ts'
import { TopologyTestDriver } from '../../../topology/streams/driver.ts'
import { Topology } from '../../../topology/streams/topology.ts'
import { outcome, type Reply, startMs, type Web } from './records.ts'

export interface Request {
  readonly host: string
  readonly url: string
  readonly startedAt: number
  readonly endedAt: number
  readonly delayMs: number
  readonly address: string | null
}

const applicationId = 'test-schedule'

/**
 * Schedule alone on the test driver, one partition, and a scripted fetcher that takes its visits, keeps to the start
 * rule under the virtual clock, and answers as the web says.
 */
export class Harness {
  readonly driver: TopologyTestDriver
  readonly requests: Request[] = []
  readonly visits: Visit[] = []
  readonly decisions: { key: string; value: Decision }[] = []
  readonly states = new Map<string, PageState>()
  readonly policies = new Map<string, HostPolicy>()
  /** Host → last record in each partition of host-scheduled. */
  readonly scheduled = new Map<string, Visit | null>()
  readonly admitted = new Set<string>()
  web: Web
  /** The fetcher takes no visit while it is off. */
  fetching = true
  readonly #options: Partial<ScheduleOptions>
  readonly #seen = new Map<string, number>()
  readonly #lastEnded = new Map<string, number>()
  readonly #gatePartitions = 4
  #life = 0

  constructor(web: Web = {}, options: Partial<ScheduleOptions> = {}) {
    this.web = web
    this.#options = options
    const spec = (name: string, partitions = 1): TopicSpec => ({
      name,
      partitions,
      cleanup: 'compact',
      maxRecordBytes: 1 << 20,
    })
    this.driver = new TopologyTestDriver({
      startWallMs: startMs,
      deadLetterTopic: 'dead-letters',
      applications: [{ applicationId, topology: this.#topology(), guarantee: 'exactly_once_v2' }],
      topics: [
        spec('unseen'),
        spec('fetched'),
        spec('host-scheduled', this.#gatePartitions),
        spec('page-states'),
        spec('host-policies'),
        spec('decisions'),
        spec('dead-letters'),
      ],
    })
    this.#visitsOut = this.driver.createOutputTopic('host-scheduled', stringSerde, topicSerde<Visit>('host-scheduled'))
    this.#statesOut = this.driver.createOutputTopic('page-states', stringSerde, topicSerde<PageState>('page-states'))
    this.#policiesOut = this.driver.createOutputTopic(
      'host-policies',
      stringSerde,
      topicSerde<HostPolicy>('host-policies'),
    )
    this.#decisionsOut = this.driver.createOutputTopic('decisions', stringSerde, topicSerde<Decision>('decisions'))
    this.#deadLetters = this.driver.createOutputTopic('dead-letters', bytesSerde, bytesSerde)
    this.#unseen = this.driver.createInputTopic('unseen', stringSerde, topicSerde<Candidate>('unseen'))
    this.#fetched = this.driver.createInputTopic('fetched', stringSerde, topicSerde<Fetched>('fetched'))
  }

  readonly #visitsOut
  readonly #statesOut
  readonly #policiesOut
  readonly #decisionsOut
  readonly #deadLetters
  readonly #unseen
  readonly #fetched

  get now(): number {
    return this.driver.clock.nowMs()
  }

  get tasks(): Tasks {
    return [this.stores]
  }

  get stores(): ReadOnlyScheduleStores {
    return openStores((name) => this.driver.getKeyValueStore(applicationId, name) as never)
  }

  /** Options of a later start may differ: they are read when the processor is made. */
  set(options: Partial<ScheduleOptions>): void {
    Object.assign(this.#options, options)
  }

  admit(...candidates: readonly (readonly [string, Candidate])[]): void {
    for (const [key] of candidates) this.admitted.add(key)
    this.#unseen.pipeKeyValueList(candidates)
    this.#take()
  }

  tell(key: string, value: Fetched): void {
    this.#fetched.pipeInput(key, value)
    this.#take()
  }

  /** Moves time, event by event, with the fetcher taking part. Where nothing is due it jumps. */
  run(ms: number): void {
    const { clock } = this.driver
    const target = clock.monotonicMs() + ms
    this.driver.runUntilIdle()
    this.#take()
    // The first steps are small: what a start has to look at is done in punctuations.
    for (let step = 0; clock.monotonicMs() < target; step++) {
      const at = clock.monotonicMs()
      const due = nextDueMs(this.tasks)
      const dueAt = due === null ? Number.POSITIVE_INFINITY : due - startMs - 600
      const quietUntil = Math.min(clock.nextTimerMs() ?? Number.POSITIVE_INFINITY, dueAt, target)
      if (step > 3 && quietUntil > at + 1000) clock.advanceTo(quietUntil - 1)
      this.driver.advanceWallClockTime(Math.max(1, Math.min(this.driver.nextEventMs(), target) - clock.monotonicMs()))
      this.#take()
    }
  }

  /** `isNewProcess`: what the fetcher had under way died with the old one. */
  restart(isNewProcess = false): void {
    if (isNewProcess) this.#life++
    this.driver.restart()
    this.#take()
  }

  deadLetters(): number {
    return this.#deadLetters.getQueueSize()
  }

  explain(url: string) {
    const found = explainUrl(this.tasks, url)
    assert.ok(found, `${url} was admitted`)
    return found
  }

  page(url: string): PageRecord {
    return this.explain(url).page
  }

  codes(): string[] {
    return this.decisions.map((d) => d.value.reasons[0]!.code)
  }

  /** Every URL is in exactly one state: the sums that are kept equal a recount, and so does each host's. */
  checkSums(): void {
    const { stores } = this
    const recount: { [name: string]: number } = {}
    const places = new Map<string, number>()
    let pages = 0
    for (const [, page] of stores.pages.range(undefined, undefined)) {
      pages++
      const host = stores.hosts.get(page.host)
      assert.ok(host, `${page.host} has a record`)
      const { state, reason } = effectiveState(page, host, stores.frontier.get(leaseKey(page.host)))
      recount[`${state}/${reason}`] = (recount[`${state}/${reason}`] ?? 0) + 1
      places.set(page.place, (places.get(page.place) ?? 0) + 1)
    }
    const counts = readCounts(this.tasks)
    assert.deepEqual({ ...counts.states }, recount)
    assert.equal(counts.admitted, pages)
    assert.equal(pages, this.admitted.size)
    let entries = 0
    let dues = 0
    for (const _ of stores.due.range(undefined, undefined)) dues++
    let visits = 0
    let waitingHosts = 0
    const leases = new Set<string>()
    for (const [name, host] of stores.hosts.range(undefined, undefined)) {
      if (host.dueAt !== null) waitingHosts++
      leases.add(leaseKey(name).toString('latin1'))
      if (host.lease !== null) visits++
      else assert.equal(stores.frontier.get(leaseKey(name)), undefined)
      entries += host.waiting + host.deep
      for (const o of host.origins) {
        assert.ok(o.leased <= o.queued && o.leased >= 0)
        entries += o.queued + o.blocked
      }
    }
    let keys = 0
    for (const [key] of stores.frontier.range(undefined, undefined)) {
      if (!leases.has(Buffer.from(key).toString('latin1'))) keys++
    }
    assert.equal(entries, pages, 'each URL is in one list')
    assert.equal(keys, pages, 'each list entry is a URL')
    assert.equal(dues, waitingHosts, 'one entry in due a host')
    assert.equal(counts.visits, visits)
  }

  #topology(): Topology {
    const topology = new Topology('schedule')
    topology
      .addSource('unseen', { topics: ['unseen'], keySerde: stringSerde, valueSerde: topicSerde<Candidate>('unseen') })
      .addSource('fetched', { topics: ['fetched'], keySerde: stringSerde, valueSerde: topicSerde<Fetched>('fetched') })
      .addProcessor(
        'schedule',
        (context) =>
          createSchedule({ fetchedTopic: 'fetched', robotsToken: 'weir', ...this.#options })(context as never) as never,
        ['unseen', 'fetched'],
      )
      .addSink(
        'host-scheduled',
        {
          topic: 'host-scheduled',
          keySerde: visitKeySerde,
          valueSerde: topicSerde<Visit>('host-scheduled'),
          partitioner: hostScheduledPartitioner,
        },
        ['schedule'],
      )
    for (const name of ['page-states', 'host-policies', 'decisions']) {
      topology.addSink(
        name,
        { topic: name, keySerde: stringSerde, valueSerde: topicSerde<unknown>(name), partitioner: () => 0 },
        ['schedule'],
      )
    }
    for (const store of scheduleStores()) topology.addStateStore(store, ['schedule'])
    return topology
  }

  #take(): void {
    for (const { key, value } of this.#statesOut.readRecordsToList()) this.states.set(key, value!)
    for (const { key, value } of this.#policiesOut.readRecordsToList()) this.policies.set(key, value!)
    for (const { key, value } of this.#decisionsOut.readRecordsToList()) this.decisions.push({ key, value: value! })
    for (const { key, value, partition } of this.#visitsOut.readRecordsToList()) {
      this.scheduled.set(`${partition} ${key}`, value)
      if (value === null) continue
      this.visits.push(value)
      if (this.fetching) this.#start(value)
    }
  }

  /** Carries a visit out: one entry after the other, each when the one before has ended and the delay is over. */
  #start(visit: Visit): void {
    const base = {
      leaseId: visit.leaseId,
      visitKind: visit.visitKind,
      host: visit.host,
      site: visit.site,
      gate: visit.gate,
      delayMs: visit.delayMs,
      delayReason: visit.delayReason,
      robotsVersion: visit.robotsVersion,
      address: visit.address,
    }
    if (visit.visitKind === 'resolve') {
      const reply = this.web.dns?.(visit.host, this.#count(`dns:${visit.host}`)) ?? {}
      if (reply === 'silent') return
      this.#later(1, () => {
        this.#send(`dns:${visit.host}`, {
          ...base,
          outcomeKind: 'dns',
          url: visit.host,
          fetchId: `${visit.leaseId}.0.0.0`,
          startedAt: 0,
          endedAt: this.now,
          status: 0,
          addresses: ['192.0.2.1'],
          ttlMs: 3_600_000,
          ...reply,
        })
      })
      return
    }
    const unstarted: string[] = []
    const next = (index: number): void => {
      const entry = visit.urls[index]
      if (entry === undefined) {
        if (unstarted.length === 0) return
        this.#send(`visit:${visit.host}`, {
          ...base,
          outcomeKind: 'visit-end',
          fetchId: `${visit.leaseId}.end`,
          startedAt: 0,
          endedAt: this.now,
          status: 0,
          unstarted,
          reason: 'not-started',
        })
        return
      }
      const ended = this.#lastEnded.get(visit.host)
      const startAt = Math.max(visit.notBefore, this.now, ended === undefined ? 0 : ended + visit.delayMs)
      this.#later(startAt - this.now, () => this.#request(visit, base, entry, index, unstarted, next))
    }
    next(0)
  }

  #request(
    visit: Visit,
    base: Partial<Fetched>,
    entry: VisitEntry,
    index: number,
    unstarted: string[],
    next: (index: number) => void,
  ): void {
    const isRobots = entry.entryKind === 'robots'
    const number = this.#count(entry.fetchUrl)
    const reply: Reply | 'not-started' | 'silent' = isRobots
      ? (this.web.robots?.(entry.fetchUrl, number) ?? { status: 404 })
      : (this.web.page?.(entry.key, number, entry) ?? { status: 200 })
    if (reply === 'silent') return
    if (reply === 'not-started') {
      unstarted.push(entry.key)
      next(index + 1)
      return
    }
    const { durationMs = 20, ...fields } = reply
    const startedAt = this.now
    const hasLeft = reply.startedAt !== 0
    this.#later(hasLeft ? durationMs : 1, () => {
      const endedAt = this.now
      if (hasLeft) {
        this.#lastEnded.set(visit.host, endedAt)
        const { host, delayMs, address } = visit
        this.requests.push({ host, url: entry.fetchUrl, startedAt, endedAt, delayMs, address })
      }
      this.#send(isRobots ? `robots:${entry.fetchUrl}` : entry.key, {
        ...base,
        outcomeKind: isRobots ? 'robots' : 'page',
        entryKind: entry.entryKind,
        fetchId: `${visit.leaseId}.${index}.${entry.attempt}.0`,
        index,
        attempt: entry.attempt,
        url: entry.fetchUrl,
        depth: entry.depth,
        startedAt,
        endedAt,
        headersMs: durationMs / 2,
        ...fields,
      })
      next(index + 1)
    })
  }

  #later(delayMs: number, then: () => void): void {
    const life = this.#life
    this.driver.clock.setTimer(delayMs, () => {
      if (life === this.#life) then()
    })
  }

  #send(key: string, change: Partial<Fetched>): void {
    this.#fetched.enqueue(key, outcome(change))
  }

  #count(key: string): number {
    const n = (this.#seen.get(key) ?? 0) + 1
    this.#seen.set(key, n)
    return n
  }
}

/** The least gap between a response's end and the next request's start on a host. */
export function leastGapMs(requests: readonly Request[], host: string): number {
  const own = requests.filter((r) => r.host === host).sort((a, b) => a.startedAt - b.startedAt)
  return own.slice(1).reduce((least, r, i) => Math.min(least, r.startedAt - own[i]!.endedAt), Number.POSITIVE_INFINITY)
}
