/**
 * `npm run simulate`: a crawl of the simulated web under a virtual clock, all applications on one thread and the memory
 * log. Prints what the web's own log says and one hash over all records; equal seeds give equal hashes.
 */
import { createHash } from 'node:crypto'
import { parseArgs } from 'node:util'
import { createMemoryArchive } from '../../connectors/archive/memory.ts'
import { createVirtualClock } from '../../connectors/clock/virtual.ts'
import type { MemoryLog } from '../../connectors/log/memory.ts'
import { isIdle, readCounts, type Tasks } from '../../processors/schedule/read.ts'
import { openStores } from '../../processors/schedule/stores.ts'
import { stringSerde, topicSerde } from '../../schemas/codec.ts'
import type { Control, DiscoveredUrls } from '../../schemas/types.ts'
import { crawlApplications } from '../../topology/crawl.ts'
import { createCrawlProcessors } from '../../topology/crawl-processors.ts'
import { readSeeds, seedRecords } from '../../topology/seeds.ts'
import { defaultSettings } from '../../topology/settings.ts'
import { TopologyTestDriver } from '../../topology/streams/driver.ts'
import { changelogTopic } from '../../topology/streams/store.ts'
import type { KeyValueStore } from '../../topology/streams/types.ts'
import { topicName, topicSpecs } from '../../topology/topics.ts'
import { createSimulatedWeb } from './in-process.ts'
import { faultsOf, judge, type Verdict, type WebRequest } from './log.ts'
import { createWebModel, type WebOptions } from './model.ts'

export interface SimulationOptions
  extends Pick<WebOptions, 'seed' | 'hosts' | 'pagesPerHost' | 'pageBytes' | 'faults'> {
  readonly delayMs: number
  /** Gives up, and fails, when the crawl is not done after this much virtual time. */
  readonly maxVirtualMs?: number
  readonly onProgress?: (virtualMs: number, pages: number) => void
}

export interface Simulation {
  readonly verdict: Verdict
  readonly states: { readonly [stateAndReason: string]: number }
  readonly records: number
  readonly deadLetters: number
  /** Hex SHA-256 over every record of every topic, changelogs included: topic, partition, offset, key, value, timestamp. */
  readonly hash: string
  readonly virtualMs: number
  readonly log: readonly WebRequest[]
}

const crawl = 'simulated'
const partitions = 4
const startWallMs = Date.UTC(2026, 0, 1)
const hourMs = 3_600_000
const dayMs = 24 * hourMs

export function simulate(options: SimulationOptions): Simulation {
  const clock = createVirtualClock(startWallMs)
  const model = createWebModel(options)
  const web = createSimulatedWeb(model, clock)
  const topics = topicSpecs(crawl, partitions)
  const settings = {
    ...defaultSettings,
    delayMs: options.delayMs,
    maxDepth: null,
    maxInFlight: 1000,
    allowPrivate: true,
  }
  const processors = createCrawlProcessors({
    crawl,
    settings,
    agent: { userAgent: 'weir/0.1 (+mailto:test@example.org)', token: 'weir' },
    http: web.http,
    resolver: web.resolver,
    archive: createMemoryArchive({ crawl }),
  })
  const applications = crawlApplications(crawl, processors)
  const changelogs = applications.flatMap(({ applicationId, topology }) =>
    topology.stores().map((store) => changelogTopic(applicationId, store.name)),
  )
  const driver = new TopologyTestDriver({
    clock,
    startWallMs,
    topics,
    deadLetterTopic: topicName(crawl, 'dead-letters'),
    applications: applications.map((a) =>
      a.guarantee === 'ack_on_take' ? { ...a, maxInFlight: settings.maxInFlight } : a,
    ),
  })
  try {
    pipeSeeds(driver, model.seeds())
    const tasks = tasksOf(driver)
    const maxVirtualMs = options.maxVirtualMs ?? 4 * dayMs
    // Longer than the second retry of an error (1 h); shorter than a second look at a 404 (1 d).
    const patienceMs = 6 * hourMs
    do {
      driver.advanceWallClockTime(10_000)
      options.onProgress?.(clock.monotonicMs(), readCounts(tasks).fetched)
    } while (!isIdle(tasks, clock.nowMs(), patienceMs) && clock.monotonicMs() < maxVirtualMs)
    const verdict = judge(web.log, model, { minDelayMs: options.delayMs })
    return {
      verdict,
      states: readCounts(tasks).states,
      ...recordsOf(driver.log, [...topics.map((t) => t.name), ...changelogs]),
      virtualMs: clock.monotonicMs(),
      log: web.log,
    }
  } finally {
    driver.close()
  }
}

function pipeSeeds(driver: TopologyTestDriver, urls: readonly string[]): void {
  const records = seedRecords(readSeeds(urls, 2048), { scope: 'host' }, startWallMs)
  const all = (_key: string, _value: unknown, count: number) => Array.from({ length: count }, (_, i) => i)
  const controls = driver.createInputTopic(
    topicName(crawl, 'controls'),
    stringSerde,
    topicSerde<Control>('controls'),
    all,
  )
  for (const { key, value } of records.controls) controls.pipeInput(key, value, startWallMs)
  driver
    .createInputTopic(topicName(crawl, 'discovered-urls'), stringSerde, topicSerde<DiscoveredUrls>('discovered-urls'))
    .pipeInput(records.discovered.key, records.discovered.value, startWallMs)
}

function tasksOf(driver: TopologyTestDriver): Tasks {
  return Array.from({ length: partitions }, (_, p) =>
    openStores(
      (name) => driver.getKeyValueStore(`${crawl}-schedule`, name, p) as unknown as KeyValueStore<never, never>,
    ),
  )
}

function recordsOf(log: MemoryLog, names: readonly string[]): Pick<Simulation, 'records' | 'deadLetters' | 'hash'> {
  const hash = createHash('sha256')
  let records = 0
  let deadLetters = 0
  const number = Buffer.alloc(8)
  for (const topic of names) {
    for (let p = 0; p < partitions; p++) {
      for (const { offset, timestamp, key, value } of log.records(topic, p)) {
        records++
        if (topic === topicName(crawl, 'dead-letters')) deadLetters++
        hash.update(`${topic}/${p}/${offset}`)
        number.writeDoubleBE(timestamp)
        hash.update(number)
        for (const bytes of [key, value]) {
          number.writeDoubleBE(bytes === null ? -1 : bytes.length)
          hash.update(number)
          if (bytes !== null) hash.update(bytes)
        }
      }
    }
  }
  return { records, deadLetters, hash: hash.digest('hex') }
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      seed: { type: 'string', default: '1' },
      hosts: { type: 'string', default: '200' },
      pages: { type: 'string', default: '100' },
      bytes: { type: 'string', default: '5000' },
      'delay-ms': { type: 'string', default: '5000' },
      'no-faults': { type: 'boolean', default: false },
    },
  })
  const started = performance.now()
  const result = simulate({
    seed: Number(values.seed),
    hosts: Number(values.hosts),
    pagesPerHost: Number(values.pages),
    pageBytes: Number(values.bytes),
    faults: !values['no-faults'],
    delayMs: Number(values['delay-ms']),
    onProgress(virtualMs, pages) {
      if (process.stderr.isTTY)
        process.stderr.write(`\r${(virtualMs / 1000).toFixed(0)} s of virtual time, ${pages} pages `)
    },
  })
  const { verdict } = result
  const print = (text: string) => void process.stdout.write(`${text}\n`)
  print(
    `seed ${values.seed}: ${values.hosts} hosts x ${values.pages} pages of ${values.bytes} bytes, delay ${values['delay-ms']} ms, faults ${values['no-faults'] ? 'off' : 'on'}`,
  )
  print(
    `virtual time ${(result.virtualMs / 3_600_000).toFixed(2)} h, real time ${((performance.now() - started) / 1000).toFixed(1)} s`,
  )
  print(
    `requests ${verdict.requests}; allowed pages ${verdict.expected}, had once ${verdict.pagesOnce}, missing ${verdict.missing.length}, repeated ${verdict.repeated.length}`,
  )
  print(
    `overlaps ${verdict.overlaps.length}, short gaps ${verdict.shortGaps.length}, early retries ${verdict.earlyRetries.length}, disallowed ${verdict.disallowed.length}, before robots ${verdict.beforeRobots.length}`,
  )
  for (const [state, n] of Object.entries(result.states).sort()) print(`  ${state.padEnd(28)} ${n}`)
  print(`records ${result.records}, dead letters ${result.deadLetters}, hash ${result.hash}`)
  const faults = faultsOf(verdict)
  for (const fault of faults.slice(0, 20)) print(`FAULT ${fault}`)
  process.exitCode = faults.length === 0 && result.deadLetters === 0 ? 0 : 1
}
