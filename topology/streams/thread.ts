import type { Clock } from '../../connectors/clock/types.ts'
import type { Batch, Ends, Input, Lane, Partition } from '../../connectors/log/types.ts'
import type { ApplicationOptions } from './application.ts'
import { StreamsError } from './errors.ts'
import { type Steps, wait } from './steps.ts'
import type { Task, TaskEnv } from './task.ts'
import { TaskManager, type ThreadOptions } from './task-manager.ts'
import { ThreadUnit } from './unit.ts'

/**
 * One stream thread: the tasks of all applications, one lane with one atomic unit for all of them, and a second lane
 * for what async stages write. All that may wait is written as Steps, so that the runtime's loop and the synchronous
 * test driver run the same code.
 */
export class StreamThread {
  readonly manager: TaskManager
  readonly #options: ThreadOptions
  readonly #unit: ThreadUnit
  #isRepositioned = true
  #isIntakeStopped = false
  #failure: { readonly error: unknown } | undefined

  constructor(options: ThreadOptions) {
    this.#options = options
    this.#unit = new ThreadUnit(options, () => this.manager)
    const { deadLetterTopic } = options.config
    const target = (name: string) => this.manager.target(name)
    const env: TaskEnv = {
      clock: options.clock,
      outputs: this.#unit.outputs,
      budget: this.#unit.budget,
      topic: target,
      get deadLetters() {
        return deadLetterTopic === undefined ? undefined : target(deadLetterTopic)
      },
      ends: (p) => this.ends(p),
      requestCommit: () => {
        this.#unit.isRequested = true
      },
      repositioned: () => {
        this.#isRepositioned = true
      },
      outboxUsed: () => {
        this.#unit.isOutboxAhead = true
      },
      wrote: (slots) => this.#unit.wrote(slots),
      fail: (error) => this.fail(error),
      onEvent: options.onEvent,
    }
    this.manager = new TaskManager(options, env, (application, error) => this.#workFailed(application, error))
  }

  /** Topics that got records from here. */
  get produced(): ReadonlySet<string> {
    return this.#unit.produced
  }
  get #lane(): Lane {
    return this.manager.lane
  }

  /** A fresh end of a partition. */
  ends(p: Partition): Ends {
    return this.#lane.ends(p)
  }

  /** The next `step` throws it. For errors that come up outside a step. */
  fail(error: unknown): void {
    this.#failure ??= { error }
  }

  *start(): Steps<void> {
    yield* this.manager.start()
    this.#unit.lastCommitMs = this.#options.clock.monotonicMs()
  }

  /**
   * Polls, processes, commits what is due. Waits for input at most `maxWaitMs`. `isEager`: positions alone are a reason
   * to commit. False: there was nothing to do. Throws what must stop the thread.
   */
  *step(maxWaitMs: number, isEager: boolean): Steps<boolean> {
    this.#check()
    const { clock, config } = this.#options
    const nowMs = clock.monotonicMs()
    if (nowMs < this.#unit.resumeAtMs) {
      if (maxWaitMs > 0) yield* wait(delay(clock, Math.min(maxWaitMs, this.#unit.resumeAtMs - nowMs)))
      return false
    }
    let isBusy = this.#punctuate(nowMs)
    let isDrained = false
    if (!this.#mayProcess(nowMs)) {
      this.#prepareLane(nowMs)
      let batches = yield* wait(this.#lane.poll(config.maxPollBytes, 0))
      if (batches.length === 0 && !isBusy && !this.#unit.outputWaits()) {
        const waitMs = Math.min(maxWaitMs, this.nextDueMs() - clock.monotonicMs())
        if (waitMs > 0) batches = yield* wait(this.#lane.poll(config.maxPollBytes, waitMs))
        this.#check()
      }
      isDrained = batches.length === 0
      if (!isDrained) isBusy = true
      this.#deliver(batches)
    }
    const processed = this.#unit.processed
    this.#process()
    if (this.#unit.processed > processed) isBusy = true
    const isDue = this.#unit.isRequested || clock.monotonicMs() >= this.#unit.lastCommitMs + config.commitIntervalMs
    if (this.#unit.takesWait() || isDue || (isDrained && isEager)) {
      if (yield* this.#unit.commitTakes()) isBusy = true
    }
    const isFull = this.#unit.isFull
    if (isFull || isDue || (isDrained && (isEager || this.#unit.outputWaits()))) {
      if (yield* this.#unit.commit()) isBusy = true
    }
    return isBusy
  }

  /** Monotonic: when `step` has something to do without new input; infinity = never. */
  nextDueMs(): number {
    const nowMs = this.#options.clock.monotonicMs()
    if (nowMs < this.#unit.resumeAtMs) return this.#unit.resumeAtMs
    let due = Number.POSITIVE_INFINITY
    const commitMs = this.#unit.lastCommitMs + this.#options.config.commitIntervalMs
    for (const { tasks } of this.manager.applications) {
      for (const task of tasks) {
        if (task.status === 'running') {
          due = Math.min(due, task.wallPunctuations.dueMs)
          if (task.retryAtMs > nowMs) due = Math.min(due, task.retryAtMs)
        }
        if (commitMs < due && (task.isTouched || task.isDirty)) due = commitMs
      }
    }
    return due
  }

  /** Whether some input waits for work to end or for a retry. */
  isHeldBack(): boolean {
    return this.manager.tasks().some((t) => t.options.inputs.some((i) => i.isPaused))
  }

  /** Everything read = the end, nothing staged, nothing in flight, no position uncommitted. */
  settled(): boolean {
    if (!this.#unit.outputs.isEmpty || this.manager.outbox?.isIdle === false) return false
    for (const { tasks, stage } of this.manager.applications) {
      if (stage !== undefined && stage.inFlight > 0) return false
      for (const task of tasks) {
        if (task.hasStaged || task.isTouched || task.isDirty || task.hasBuffered()) return false
        for (const { input, next } of task.options.inputs) if (next < this.ends(input).high) return false
      }
    }
    return true
  }

  /** Async stages take nothing more. */
  stopIntake(): void {
    this.#isIntakeStopped = true
  }

  inFlight(): number {
    return this.manager.applications.reduce((sum, a) => sum + (a.stage?.inFlight ?? 0), 0)
  }

  /** Commits what is staged and ends everything in order. Takes that are not committed are given back. */
  *close(): Steps<void> {
    for (const application of this.manager.applications) {
      if (application.stage === undefined || application.stage.taken === 0) continue
      application.stage.dropTakes(0)
      yield* this.manager.positionTasks(application)
    }
    yield* this.#unit.commitTakes()
    yield* this.#unit.commit()
    for (const task of this.manager.tasks()) task.close()
    if (this.manager.outbox !== undefined) yield* this.manager.outbox.settled()
    yield* this.manager.release()
  }

  /** Ends everything without a commit. */
  *closeDirty(): Steps<void> {
    for (const task of this.manager.tasks()) task.close()
    yield* this.manager.release()
  }

  /**
   * Drops what is staged and begins again at the committed positions, as after a crash. One unit is for all: when
   * something is staged, all atomic applications begin again, whichever is named.
   */
  *restart(applicationId?: string): Steps<void> {
    this.#failure = undefined
    this.#unit.resumeAtMs = 0
    const isStaged = !this.#unit.isEmpty
    for (const application of this.manager.applications) {
      const isNamed = applicationId === undefined || application.options.applicationId === applicationId
      if (!isNamed && !(isStaged && application.stage === undefined)) continue
      application.startedAt.clear()
      yield* this.manager.initTasks(application)
    }
    this.#unit.outputs.clear()
  }

  #check(): void {
    if (this.#failure !== undefined) throw this.#failure.error
  }

  #punctuate(monotonicMs: number): boolean {
    let isBusy = false
    for (const { tasks } of this.manager.applications) {
      for (const task of tasks) if (task.punctuate(monotonicMs)) isBusy = true
    }
    return isBusy
  }

  #mayProcess(monotonicMs: number): boolean {
    for (const { tasks } of this.manager.applications) {
      for (const task of tasks) if (task.hasBuffered() && this.#isOpen(task, monotonicMs)) return true
    }
    return false
  }

  #isOpen(task: Task, monotonicMs: number): boolean {
    return task.mayProcess(monotonicMs) && !(this.#isIntakeStopped && task.isAsync)
  }

  /** Before a poll, which ends the life of what is buffered: what could not be processed is read again. */
  #prepareLane(monotonicMs: number): void {
    for (const task of this.manager.tasks()) {
      for (const input of task.options.inputs) {
        if (!input.hasBuffered) continue
        input.dropBuffered()
        this.#isRepositioned = true
      }
    }
    const isAssigned = this.#isRepositioned
    if (isAssigned) this.#lane.assign(this.#positions())
    this.#isRepositioned = false
    for (const task of this.manager.tasks()) {
      if (task.status !== 'running') continue
      const isPaused = !this.#isOpen(task, monotonicMs)
      for (const input of task.options.inputs) {
        if (isAssigned) input.isPaused = false
        if (input.isPaused === isPaused) continue
        input.isPaused = isPaused
        this.#lane.pause(input.input, isPaused)
      }
    }
  }

  #positions(): Map<Input, number> {
    const positions = new Map<Input, number>()
    for (const task of this.manager.tasks()) {
      if (task.status !== 'running') continue
      for (const { input, next } of task.options.inputs) positions.set(input, next)
    }
    return positions
  }

  #deliver(batches: readonly Batch[]): void {
    for (const batch of batches) this.manager.inputOf(batch.from)?.buffer(batch)
  }

  /** Until what may be processed is, the unit is full, a commit is asked for or the time slice is over. */
  #process(): void {
    const { clock, config } = this.#options
    const untilMs = clock.monotonicMs() + config.sliceMs
    for (const { tasks } of this.manager.applications) {
      for (const task of tasks) {
        for (let n = 1; this.#isOpen(task, untilMs - config.sliceMs) && task.processNext(); n++) {
          this.#unit.processed++
          if (this.#unit.isRequested) return
          if (this.#unit.isFull) return
          if (n % recordsPerTimeCheck === 0 && clock.monotonicMs() >= untilMs) return
        }
      }
    }
  }

  #workFailed(application: ApplicationOptions, error: unknown): void {
    if (error instanceof StreamsError && error.consequence === 'stop-process') this.fail(error)
    else
      this.#options.onEvent({
        kind: 'work-failed',
        applicationId: application.applicationId,
        error,
      })
  }
}

const recordsPerTimeCheck = 64

function delay(clock: Clock, delayMs: number): Promise<void> {
  return new Promise((resolve) => clock.setTimer(delayMs, resolve))
}
