import type { Clock } from '../../connectors/clock/types.ts'
import { type Faults, noFaults } from '../../connectors/faults/types.ts'
import type { Log, TaskId, TopicSpec } from '../../connectors/log/types.ts'
import type { StoreProvider } from '../../connectors/store/types.ts'
import type { ApplicationOptions } from './application.ts'
import { defaultConfig, type StreamsConfig } from './config.ts'
import { StreamsError } from './errors.ts'
import type { StreamsEvent } from './events.ts'
import { mayFollow, type State } from './state.ts'
import { type ApplicationStatus, committedStore, statusOf } from './status.ts'
import { runAsync } from './steps.ts'
import type { ReadOnlyKeyValueStore } from './store.ts'
import { StreamThread } from './thread.ts'

/** As in Java: what becomes of the streams when an error is nobody's. A StopProcessError always shuts down. */
export type UncaughtExceptionResponse = 'replace-thread' | 'shutdown-client'

export interface StreamsOptions {
  readonly log: Log
  readonly stores: StoreProvider
  readonly clock: Clock
  readonly faults?: Faults
  /** The catalogue: every topic that an application reads or writes, and the dead-letter topic. */
  readonly topics: readonly TopicSpec[]
  readonly applications: readonly ApplicationOptions[]
  readonly config?: Partial<StreamsConfig>
  readonly onEvent?: (event: StreamsEvent) => void
  /** Default: `shutdown-client`. */
  readonly onUncaughtException?: (error: unknown) => UncaughtExceptionResponse
}

export interface Streams {
  /** Resolves when all tasks are restored and running. Rejects, and the state is ERROR, when that fails. */
  start(): Promise<void>
  /** Takes nothing more, lets async work under way end for at most `drainTimeoutMs`, commits and closes. */
  close(options?: { drainTimeoutMs?: number }): Promise<void>
  state(): State
  /** Resolves with the error when the streams have stopped because of it. Never rejects. */
  readonly failed: Promise<unknown>
  applications(): readonly ApplicationStatus[]
  /** Records between the positions and the ends, over all inputs. */
  lag(): number
  /** Committed entries of one task's store; undefined if the task is not here. Do not use it after `close`. */
  getStore<K, V>(applicationId: string, partition: number, store: string): ReadOnlyKeyValueStore<K, V> | undefined
  inFlight(applicationId: string): number
  /** Everything read = the end, nothing staged, nothing in flight, every position committed. */
  settled(): boolean
  /** Stops one task as a StopTaskError would; for operators. */
  stopTask(applicationId: string, taskId: TaskId, why: Error): void
}

/** Runs applications on one stream thread of this process. */
export function createStreams(options: StreamsOptions): Streams {
  const { clock, onEvent = () => {}, onUncaughtException = () => 'shutdown-client' as const } = options
  const config = { ...defaultConfig, ...options.config }
  let state: State = 'CREATED'
  let closing: { readonly untilMs: number } | undefined
  let running: Promise<void> | undefined
  let reportFailure: (error: unknown) => void
  const failed = new Promise<unknown>((resolve) => {
    reportFailure = resolve
  })
  const thread = new StreamThread({
    log: options.log,
    stores: options.stores,
    clock,
    faults: options.faults ?? noFaults,
    topics: options.topics,
    applications: options.applications,
    config,
    onEvent,
    launch: (steps) => {
      runAsync(steps).catch((error) => thread.fail(error))
    },
  })

  function setState(to: State): void {
    if (state === to || !mayFollow(state, to)) return
    const from = state
    state = to
    onEvent({ kind: 'state', from, to })
  }

  async function run(): Promise<void> {
    while (closing === undefined || (thread.inFlight() > 0 && clock.monotonicMs() < closing.untilMs)) {
      try {
        await runAsync(thread.step(thread.isHeldBack() ? heldBackPollMs : config.pollMs, false))
      } catch (error) {
        onEvent({ kind: 'uncaught', error })
        if (!mayGoOn(error)) {
          await stop(error)
          return
        }
        setState('REBALANCING')
        try {
          await runAsync(thread.restart())
        } catch (restartError) {
          await stop(restartError)
          return
        }
        setState('RUNNING')
      }
      // Timers and sockets get their turn, however much there is to process.
      await new Promise(setImmediate)
    }
    try {
      await runAsync(thread.close())
      setState('NOT_RUNNING')
    } catch (error) {
      await stop(error)
    }
  }

  function mayGoOn(error: unknown): boolean {
    if (error instanceof StreamsError && error.consequence === 'stop-process') return false
    return onUncaughtException(error) === 'replace-thread'
  }

  async function stop(error: unknown): Promise<void> {
    setState('PENDING_ERROR')
    try {
      await runAsync(thread.closeDirty())
    } catch (closeError) {
      onEvent({ kind: 'uncaught', error: closeError })
    }
    setState('ERROR')
    reportFailure(error)
  }

  return {
    failed,
    state: () => state,
    async start() {
      if (state !== 'CREATED') throw new Error(`starting streams that are ${state}`)
      setState('REBALANCING')
      try {
        await runAsync(thread.start())
      } catch (error) {
        await stop(error)
        throw error
      }
      if (closing === undefined) setState('RUNNING')
      running = run()
    },
    async close({ drainTimeoutMs = defaultDrainTimeoutMs } = {}) {
      if (state === 'CREATED') {
        setState('PENDING_SHUTDOWN')
        setState('NOT_RUNNING')
        return
      }
      closing ??= { untilMs: clock.monotonicMs() + drainTimeoutMs }
      thread.stopIntake()
      setState('PENDING_SHUTDOWN')
      await running
    },
    applications: () => statusOf(thread),
    lag: () => statusOf(thread).reduce((sum, a) => sum + a.tasks.reduce((s, t) => s + t.lag, 0), 0),
    getStore: <K, V>(applicationId: string, partition: number, store: string) =>
      committedStore<K, V>(thread, applicationId, partition, store),
    inFlight: (applicationId) =>
      thread.manager.applications.find((a) => a.options.applicationId === applicationId)?.stage?.inFlight ?? 0,
    settled: () => state === 'RUNNING' && thread.settled(),
    stopTask(applicationId, taskId, why) {
      const application = thread.manager.applications.find((a) => a.options.applicationId === applicationId)
      application?.tasks.find((t) => t.options.id === taskId)?.stop(why)
    },
  }
}

/** How soon an input that waits for work to end is looked at again. */
const heldBackPollMs = 5
const defaultDrainTimeoutMs = 10_000
