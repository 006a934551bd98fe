import type { Clock } from '../../connectors/clock/types.ts'
import type { Ends, Partition, TaskId } from '../../connectors/log/types.ts'
import type { Checkpoint, TaskStore, Write } from '../../connectors/store/types.ts'
import type { AsyncStage, WorkOwner } from './async-stage.ts'
import { TaskContext } from './context.ts'
import { deadLetterHeaders } from './dead-letters.ts'
import { RetryError, StreamsError, TopologyError } from './errors.ts'
import type { StreamsEvent } from './events.ts'
import type { TaskInput } from './input.ts'
import type { Outbox } from './outbox.ts'
import { Forwards, type Outputs, type Slot, type TargetTopic } from './outputs.ts'
import { Punctuations } from './punctuation.ts'
import { type Changelog, checkpointKey } from './restore.ts'
import type { StagedStore } from './store.ts'
import type { SubTopology } from './topology.ts'
import type { ProcessingGuarantee, Processor, Punctuator, Record } from './types.ts'

/** What a task needs of its thread. */
export interface TaskEnv {
  readonly clock: Clock
  /** Of the thread's open unit. */
  readonly outputs: Outputs
  topic(name: string): TargetTopic
  readonly deadLetters: TargetTopic | undefined
  ends(p: Partition): Ends
  /** Staged bytes of all tasks. */
  readonly budget: { stagedBytes: number }
  /** Asked for by a processor. */
  requestCommit(): void
  /** Positions were changed: the lane must be assigned again. */
  repositioned(): void
  /** Outputs went to the outbox that offsets must not overtake. */
  outboxUsed(): void
  /** The partitions got records. */
  wrote(slots: readonly Slot[]): void
  fail(error: unknown): void
  onEvent(event: StreamsEvent): void
}

export interface TaskOptions {
  readonly applicationId: string
  readonly id: TaskId
  readonly partition: number
  readonly partitions: number
  readonly subTopology: SubTopology
  readonly guarantee: ProcessingGuarantee
  readonly inputs: readonly TaskInput[]
  readonly taskStore: TaskStore | undefined
  readonly stores: readonly StagedStore<unknown, unknown>[]
  /** One a store, in the same order. */
  readonly changelogs: readonly Changelog[]
  /** With guarantee `ack_on_take`. */
  readonly stage: AsyncStage | undefined
  readonly outbox: Outbox | undefined
  readonly env: TaskEnv
}

/** A sub-topology × a partition: the processors, their stores and what they have done since the last commit. */
export class Task {
  readonly options: TaskOptions
  readonly forwards = new Forwards()
  readonly streamPunctuations = new Punctuations()
  /** On the monotonic clock, so that a wall clock that jumps neither skips nor repeats one. */
  readonly wallPunctuations = new Punctuations()
  /** Of the present processors; work and completions of earlier ones belong to nobody. */
  life: WorkOwner = { isLive: false, inFlight: 0 }
  status: 'created' | 'running' | 'stopped' | 'closed' = 'created'
  /** Monotonic; while it lies ahead the task waits to try a record again. */
  retryAtMs = 0
  /** Something ran since the last commit: processors may hold sums. */
  isTouched = false
  streamTimeMs = -1
  /** What a forwarded record without a timestamp gets. */
  timestampMs = 0
  /** A record, punctuation, flush or completion is in process: the only times at which a processor may forward. */
  isOpen = false
  /** The input of the record in process. */
  current: TaskInput | undefined
  #currentOffset = -1
  #processors: readonly Processor<unknown, unknown>[] = []
  #entries: ReadonlyMap<TaskInput, (record: Record<unknown, unknown>) => void> = new Map()
  #seeks: TaskInput[] = []
  #stagedBytes = 0
  #isCaughtUp = false

  constructor(options: TaskOptions) {
    this.options = options
  }

  get isAsync(): boolean {
    return this.options.stage !== undefined
  }
  get name(): string {
    return `${this.options.applicationId}/${this.options.id}`
  }
  get currentOffset(): number {
    return this.#currentOffset
  }

  /** Makes the processors; positions and stores must be set. */
  init(): void {
    this.life = { isLive: true, inFlight: 0 }
    this.status = 'running'
    this.isTouched = false
    this.streamTimeMs = -1
    this.#isCaughtUp = false
    for (const input of this.options.inputs) input.highAtStart = this.options.env.ends(input.input).high
    const context = new TaskContext(this)
    this.#processors = context.start()
    this.#entries = new Map(this.options.inputs.map((input) => [input, context.entry(input.source)]))
    this.#event(() => {
      for (const processor of this.#processors) processor.init?.()
    })
  }

  /** Ends the processors and drops everything staged. Work under way is no longer listened to. */
  close(): void {
    if (this.status === 'closed' || this.status === 'created') return
    this.life.isLive = false
    this.status = 'closed'
    for (const processor of [...this.#processors].reverse()) {
      try {
        processor.close?.()
      } catch (error) {
        this.options.env.onEvent({ kind: 'uncaught', error })
      }
    }
    this.#processors = []
    this.streamPunctuations.clear()
    this.wallPunctuations.clear()
    this.dropStaged()
  }

  dropStaged(): void {
    for (const store of this.options.stores) store.staged.clear()
    this.forwards.truncate(0)
    this.#seeks = []
    this.#countStaged()
    for (const input of this.options.inputs) input.dropBuffered()
    this.retryAtMs = 0
  }

  /** Whether it may take a record now. */
  mayProcess(monotonicMs: number): boolean {
    return this.status === 'running' && this.retryAtMs <= monotonicMs && this.options.stage?.isFull !== true
  }

  hasBuffered(): boolean {
    for (const input of this.options.inputs) if (input.hasBuffered) return true
    return false
  }

  /**
   * Takes the record with the lowest timestamp of those at the heads of the inputs (of equal ones the source that was
   * added first) through the processors. False: nothing is buffered. Throws what must stop the thread.
   */
  processNext(): boolean {
    const input = this.#pick()
    if (input === undefined) return false
    const offset = input.batch().offset(input.at)
    const takes = this.options.stage?.taken ?? 0
    this.isTouched = true
    this.current = input
    this.#currentOffset = offset
    input.next = offset + 1
    this.isOpen = true
    try {
      const record = input.record()
      if (record.timestamp > this.streamTimeMs) this.streamTimeMs = record.timestamp
      this.timestampMs = record.timestamp
      this.#entries.get(input)!(record)
    } catch (error) {
      this.#rollback(0)
      this.options.stage?.dropTakes(takes)
      if (!this.#failed(error, input, offset)) return true
    } finally {
      this.current = undefined
      this.isOpen = false
    }
    input.advance()
    this.#keep(0)
    if (this.streamTimeMs >= this.streamPunctuations.dueMs) this.#punctuate(this.streamPunctuations, this.streamTimeMs)
    return true
  }

  /** Runs the wall-clock punctuations that are due. */
  punctuate(monotonicMs: number): boolean {
    if (this.status !== 'running' || this.wallPunctuations.dueMs > monotonicMs) return false
    this.#punctuate(this.wallPunctuations, monotonicMs)
    return true
  }

  /** The flush step of a commit. */
  flush(): void {
    if (!this.isTouched) return
    this.#event(() => {
      for (const processor of this.#processors) processor.flush?.()
    })
    this.isTouched = false
  }

  /** A completion of async work. */
  complete(life: WorkOwner, event: () => void, acked: (() => void) | undefined): void {
    if (!life.isLive) return
    const from = this.forwards.length
    const { current, timestampMs, isOpen } = this
    this.isOpen = true
    this.current = undefined
    this.timestampMs = this.options.env.clock.nowMs()
    this.isTouched = true
    try {
      event()
    } catch (error) {
      this.forwards.truncate(from)
      if (error instanceof StreamsError && error.consequence === 'stop-process') this.options.env.fail(error)
      throw error
    } finally {
      this.current = current
      this.timestampMs = timestampMs
      this.isOpen = isOpen
    }
    this.options.outbox!.complete(this.forwards, from, acked && (() => life.isLive && acked()))
    this.forwards.truncate(from)
  }

  seekToBeginning(topic: string): void {
    this.#seeks.push(this.input(topic))
  }

  input(topic: string): TaskInput {
    const input = this.options.inputs.find((i) => i.input.topic === topic)
    if (input === undefined) throw new TopologyError(`task ${this.name} does not read topic ${topic}`)
    return input
  }

  isCaughtUp(): boolean {
    if (!this.#isCaughtUp) this.#isCaughtUp = this.options.inputs.every((i) => i.next >= i.highAtStart)
    return this.#isCaughtUp
  }

  get hasStaged(): boolean {
    for (const store of this.options.stores) if (store.staged.size > 0) return true
    return false
  }
  get isDirty(): boolean {
    for (const input of this.options.inputs) if (input.isDirty) return true
    return false
  }

  /** The staged writes into the open unit. */
  appendChangelogs(): void {
    const { stores, changelogs, env, partition } = this.options
    const nowMs = env.clock.nowMs()
    for (const [i, store] of stores.entries()) {
      if (store.staged.size === 0) continue
      const slot = env.topic(changelogs[i]!.partition.topic).slots[partition]!
      for (const { key, value } of store.staged.entries()) env.outputs.add(slot, key, value, nowMs, [])
    }
  }

  /** The unit is committed: the staged writes go into the local store with the changelogs' new ends. */
  applyStaged(ends: ReadonlyMap<Partition, number>): void {
    const { stores, taskStore, changelogs } = this.options
    if (taskStore === undefined || !this.hasStaged) return
    const writes: Write[] = []
    for (const store of stores) for (const e of store.staged.entries()) writes.push([store.name, e.key, e.value])
    const checkpoint: Map<string, { topicId: string; next: number }> = new Map(
      taskStore.checkpoint() satisfies Checkpoint,
    )
    for (const { partition, topicId } of changelogs) {
      const next = ends.get(partition)
      if (next !== undefined) checkpoint.set(checkpointKey(partition), { topicId, next })
    }
    taskStore.apply(writes, checkpoint)
    for (const store of stores) store.staged.clear()
    this.#countStaged()
  }

  #pick(): TaskInput | undefined {
    let best: TaskInput | undefined
    for (const input of this.options.inputs) {
      if (!input.hasBuffered) continue
      if (best === undefined || input.headTimestamp() < best.headTimestamp()) best = input
    }
    return best
  }

  #punctuate(punctuations: Punctuations, nowMs: number): void {
    const isStream = punctuations === this.streamPunctuations
    punctuations.run(nowMs, (punctuator: Punctuator) => {
      const { clock } = this.options.env
      this.#event(() => punctuator(isStream ? nowMs : clock.nowMs()))
    })
  }

  /** What runs without a record. An error here belongs to no record: it waits, stops the task or is thrown on. */
  #event(run: () => void): void {
    this.isTouched = true
    this.current = undefined
    this.timestampMs = this.options.env.clock.nowMs()
    this.isOpen = true
    try {
      run()
    } catch (error) {
      this.#rollback(0)
      if (error instanceof RetryError) this.#retryLater(error)
      else if (error instanceof StreamsError && error.consequence === 'stop-task') this.stop(error)
      else throw error
      return
    } finally {
      this.isOpen = false
    }
    this.#keep(0)
  }

  /** True: the record is dealt with. False: it stays the next one. */
  #failed(error: unknown, input: TaskInput, offset: number): boolean {
    const { env, applicationId, id } = this.options
    const consequence = error instanceof StreamsError ? error.consequence : 'dead-letter'
    if (consequence === 'dead-letter' && env.deadLetters !== undefined) {
      const batch = input.batch()
      const source = {
        topic: input.input.topic,
        partition: input.input.partition,
        offset,
      }
      this.#writeDeadLetter(env.deadLetters, error, source, batch.timestamp(input.at))
      env.onEvent({
        kind: 'dead-letter',
        applicationId,
        taskId: id,
        ...source,
        error,
      })
      return true
    }
    input.next = offset
    if (consequence === 'retry') this.#retryLater(error as RetryError)
    else if (consequence === 'stop-task') this.stop(error)
    else throw error
    return false
  }

  #writeDeadLetter(
    topic: TargetTopic,
    error: unknown,
    source: { topic: string; partition: number; offset: number },
    timestampMs: number,
  ): void {
    const input = this.current!
    const batch = input.batch()
    const partition = source.partition % topic.slots.length
    const headers = deadLetterHeaders(error, source, batch.headers(input.at))
    try {
      this.forwards.add(topic, partition, batch.key(input.at), batch.value(input.at), timestampMs, headers)
    } catch {
      // It does not fit into the dead letters either: then where it is has to do.
      this.forwards.add(topic, partition, null, null, timestampMs, deadLetterHeaders(error, source, []))
    }
  }

  #retryLater(error: RetryError): void {
    const { env, applicationId, id, inputs } = this.options
    this.retryAtMs = env.clock.monotonicMs() + error.delayMs
    for (const input of inputs) input.dropBuffered()
    env.repositioned()
    env.onEvent({
      kind: 'retry',
      applicationId,
      taskId: id,
      delayMs: error.delayMs,
      error,
    })
  }

  stop(error: unknown): void {
    const { env, applicationId, id, inputs } = this.options
    this.status = 'stopped'
    for (const input of inputs) input.dropBuffered()
    env.repositioned()
    env.onEvent({ kind: 'task-stopped', applicationId, taskId: id, error })
  }

  /** The savepoint: what was done since is part of the unit. */
  #keep(from: number): void {
    for (const store of this.options.stores) store.staged.keep()
    if (this.forwards.length > from) {
      const { outbox, env } = this.options
      if (outbox === undefined) {
        this.forwards.copyTo(env.outputs, from, this.forwards.length)
      } else {
        outbox.complete(this.forwards, from, undefined)
        env.outboxUsed()
      }
      this.forwards.truncate(from)
    }
    if (this.#seeks.length > 0) {
      for (const input of this.#seeks) input.reset(0)
      this.#seeks = []
      this.options.env.repositioned()
    }
    this.#countStaged()
  }

  #rollback(from: number): void {
    for (const store of this.options.stores) store.staged.rollback()
    this.forwards.truncate(from)
    this.#seeks = []
  }

  #countStaged(): void {
    let bytes = 0
    for (const store of this.options.stores) bytes += store.staged.bytes
    this.options.env.budget.stagedBytes += bytes - this.#stagedBytes
    this.#stagedBytes = bytes
  }
}
