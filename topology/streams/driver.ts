import { createVirtualClock, type VirtualClock } from '../../connectors/clock/virtual.ts'
import { type Faults, noFaults } from '../../connectors/faults/types.ts'
import { createMemoryLog, type MemoryLog } from '../../connectors/log/memory.ts'
import type { Log, TopicSpec, Unit } from '../../connectors/log/types.ts'
import { createMemoryStoreProvider } from '../../connectors/store/memory.ts'
import type { StoreProvider } from '../../connectors/store/types.ts'
import type { ApplicationOptions } from './application.ts'
import { defaultConfig, type StreamsConfig } from './config.ts'
import { TestInputTopic, TestOutputTopic } from './driver-topics.ts'
import type { StreamsEvent } from './events.ts'
import { type ApplicationStatus, committedStore, statusOf } from './status.ts'
import { runSync, wait } from './steps.ts'
import type { ReadOnlyKeyValueStore } from './store.ts'
import { StreamThread } from './thread.ts'
import type { Serde, StreamPartitioner } from './types.ts'

export interface TestDriverOptions {
  readonly applications: readonly ApplicationOptions[]
  readonly topics: readonly TopicSpec[]
  readonly startWallMs: number
  readonly deadLetterTopic?: string
  readonly config?: Partial<StreamsConfig>
  readonly faults?: Faults
  readonly onEvent?: (event: StreamsEvent) => void
  /** Default: a new one at `startWallMs`. Given one, `startWallMs` is not looked at. */
  readonly clock?: VirtualClock
  /** Default: in memory. Must answer synchronously. */
  readonly stores?: StoreProvider
}

/**
 * Runs applications together on the memory log and a virtual clock, synchronously: the same tasks and the same commit
 * protocol as the runtime. Nothing happens by itself; time moves only by `advanceWallClockTime`. Errors that would
 * stop the streams are thrown by whatever call runs into them; `restart` then plays the next start.
 */
export class TopologyTestDriver {
  readonly clock: VirtualClock
  readonly log: MemoryLog
  readonly #thread: StreamThread
  readonly #producer: Unit
  readonly #topics: ReadonlyMap<string, TopicSpec>
  #isClosed = false

  constructor(options: TestDriverOptions) {
    this.clock = options.clock ?? createVirtualClock(options.startWallMs)
    this.log = createMemoryLog({ clock: this.clock })
    this.#topics = new Map(options.topics.map((t) => [t.name, t]))
    const log = withoutMembership(this.log)
    this.#thread = new StreamThread({
      log,
      stores: options.stores ?? createMemoryStoreProvider(),
      clock: this.clock,
      faults: options.faults ?? noFaults,
      topics: options.topics,
      applications: options.applications,
      config: { ...defaultConfig, ...options.config, deadLetterTopic: options.deadLetterTopic },
      onEvent: options.onEvent ?? (() => {}),
      launch: (steps) => {
        try {
          runSync(steps)
        } catch (error) {
          this.#thread.fail(error)
        }
      },
    })
    runSync(this.#thread.start())
    this.#producer = runSync(wait(log.lane('test-driver'))).begin('idempotent')
  }

  /** `partitioner`: absent = by the project's hash of the serialized key. */
  createInputTopic<K, V>(
    topic: string,
    keySerde: Serde<K>,
    valueSerde: Serde<V>,
    partitioner?: StreamPartitioner<K, V>,
  ): TestInputTopic<K, V> {
    const { partitions } = this.#topic(topic)
    const host = { log: this.log, unit: this.#producer, clock: this.clock, run: () => this.runUntilIdle() }
    return new TestInputTopic(host, topic, partitions, keySerde, valueSerde, partitioner)
  }

  createOutputTopic<K, V>(topic: string, keySerde: Serde<K>, valueSerde: Serde<V>): TestOutputTopic<K, V> {
    return new TestOutputTopic(this.log, topic, this.#topic(topic).partitions, keySerde, valueSerde)
  }

  /** Processes and commits until there is nothing to do at the present time. */
  runUntilIdle(): void {
    while (runSync(this.#thread.step(0, true))) {
      // Each step says whether there was anything to do.
    }
  }

  /** Moves from event to event (timers, punctuations, retries) and runs until idle after each. */
  advanceWallClockTime(ms: number): void {
    const targetMs = this.clock.monotonicMs() + ms
    this.runUntilIdle()
    for (;;) {
      const dueMs = Math.min(this.clock.nextTimerMs() ?? Number.POSITIVE_INFINITY, this.#thread.nextDueMs())
      if (dueMs > targetMs) break
      this.clock.advanceTo(Math.max(dueMs, this.clock.monotonicMs()))
      this.runUntilIdle()
    }
    this.clock.advanceTo(targetMs)
    this.runUntilIdle()
  }

  /** Monotonic: when `advanceWallClockTime` would next have something to do; infinity = never. */
  nextEventMs(): number {
    return Math.min(this.clock.nextTimerMs() ?? Number.POSITIVE_INFINITY, this.#thread.nextDueMs())
  }

  /** The committed entries. Throws if the application has no such store or partition. */
  getKeyValueStore<K, V>(applicationId: string, store: string, partition = 0): ReadOnlyKeyValueStore<K, V> {
    const found = committedStore<K, V>(this.#thread, applicationId, partition, store)
    if (found === undefined)
      throw new Error(`application ${applicationId} has no store ${store} in partition ${partition}`)
    return found
  }

  /** By `<applicationId>/<taskId>/<store>`. */
  getAllStateStores(): Map<string, ReadOnlyKeyValueStore<unknown, unknown>> {
    const stores = new Map<string, ReadOnlyKeyValueStore<unknown, unknown>>()
    for (const { applicationId, tasks } of this.applications()) {
      for (const { taskId, partition, stores: names } of tasks) {
        for (const name of names) {
          stores.set(`${applicationId}/${taskId}/${name}`, this.getKeyValueStore(applicationId, name, partition))
        }
      }
    }
    return stores
  }

  producedTopicNames(): Set<string> {
    return new Set(this.#thread.produced)
  }

  applications(): ApplicationStatus[] {
    return statusOf(this.#thread)
  }

  settled(): boolean {
    return this.#thread.settled()
  }

  /** Async work taken and not done, of all applications. */
  inFlight(): number {
    return this.#thread.inFlight()
  }

  /** The next commit, of whichever application, ends so and changes nothing. */
  failNextCommit(kind: 'aborted' | 'fenced', by: 'epoch' | 'producer' = 'epoch'): void {
    this.log.failNextCommit(kind, by)
  }

  /**
   * As after a crash of one application, or of all: nothing that was not committed is left, stores are as they were
   * applied and are restored from their changelogs. `wipeStores`: as if the disk was lost too.
   */
  restart(applicationId?: string, { wipeStores = false } = {}): void {
    if (wipeStores) {
      for (const { options, tasks } of this.#thread.manager.applications) {
        if (applicationId !== undefined && options.applicationId !== applicationId) continue
        for (const task of tasks) task.options.taskStore?.wipe()
      }
    }
    runSync(this.#thread.restart(applicationId))
  }

  /** Closes all processors. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const task of this.#thread.manager.tasks()) task.close()
  }

  #topic(name: string): TopicSpec {
    const topic = this.#topics.get(name)
    if (topic === undefined) throw new Error(`topic ${name} is not in the driver's catalogue`)
    return topic
  }
}

/** A group that has no members takes the epoch of a tool: so nobody has to wait for an assignment. */
function withoutMembership(log: Log): Log {
  return {
    ...log,
    join: (_group, instanceId, assign) => ({
      next: () => ({
        epoch: { memberId: '', generation: -1 },
        owned: assign([instanceId]).get(instanceId) ?? [],
        revoke: [],
        lost: [],
      }),
      leave: () => {},
    }),
  }
}
