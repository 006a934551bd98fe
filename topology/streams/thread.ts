import type { Clock } from '../../connectors/clock/types.ts'
import type { Batch, Ends, GroupOffsets, Input, Lane, Outcome, Partition } from '../../connectors/log/types.ts'
import type { ApplicationOptions } from './application.ts'
import { StopProcessError, StreamsError } from './errors.ts'
import { Outputs, type Slot } from './outputs.ts'
import { type Steps, wait } from './steps.ts'
import type { Task, TaskEnv } from './task.ts'
import { type RunningApplication, TaskManager, type ThreadOptions } from './task-manager.ts'

/**
 * One stream thread: the tasks of all applications, one lane with one atomic unit for all of them, and a second lane
 * for what async stages write. All that may wait is written as Steps, so that the runtime's loop and the synchronous
 * test driver run the same code.
 */
export class StreamThread {
  readonly manager: TaskManager
  readonly #options: ThreadOptions
  readonly #outputs = new Outputs()
  readonly #budget = { stagedBytes: 0 }
  readonly #produced = new Set<string>()
  #isRepositioned = true
  #isCommitRequested = false
  #isOutboxAhead = false
  #isIntakeStopped = false
  #lastCommitMs = 0
  #failedCommits = 0
  /** Monotonic; while it lies ahead nothing runs: commits failed one after the other. */
  #resumeAtMs = 0
  #processed = 0
  #uncommitted = 0
  #failure: { readonly error: unknown } | undefined

  constructor(options: ThreadOptions) {
    this.#options = options
    const { deadLetterTopic } = options.config
    const target = (name: string) => this.manager.target(name)
    const env: TaskEnv = {
      clock: options.clock,
      outputs: this.#outputs,
      budget: this.#budget,
      topic: target,
      get deadLetters() {
        return deadLetterTopic === undefined ? undefined : target(deadLetterTopic)
      },
      ends: (p) => this.ends(p),
      requestCommit: () => {
        this.#isCommitRequested = true
      },
      repositioned: () => {
        this.#isRepositioned = true
      },
      outboxUsed: () => {
        this.#isOutboxAhead = true
      },
      wrote: (slots) => this.#wrote(slots),
      fail: (error) => this.fail(error),
      onEvent: options.onEvent,
    }
    this.manager = new TaskManager(options, env, (application, error) => this.#workFailed(application, error))
  }

  /** Topics that got records from here. */
  get produced(): ReadonlySet<string> {
    return this.#produced
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
    this.#lastCommitMs = this.#options.clock.monotonicMs()
  }

  /**
   * Polls, processes, commits what is due. Waits for input at most `maxWaitMs`. `isEager`: positions alone are a reason
   * to commit. False: there was nothing to do. Throws what must stop the thread.
   */
  *step(maxWaitMs: number, isEager: boolean): Steps<boolean> {
    this.#check()
    const { clock, config } = this.#options
    const nowMs = clock.monotonicMs()
    if (nowMs < this.#resumeAtMs) {
      if (maxWaitMs > 0) yield* wait(delay(clock, Math.min(maxWaitMs, this.#resumeAtMs - nowMs)))
      return false
    }
    let isBusy = this.#punctuate(nowMs)
    let isDrained = false
    if (!this.#mayProcess(nowMs)) {
      this.#prepareLane(nowMs)
      let batches = yield* wait(this.#lane.poll(config.maxPollBytes, 0))
      if (batches.length === 0 && !isBusy && !this.#outputWaits()) {
        const waitMs = Math.min(maxWaitMs, this.nextDueMs() - clock.monotonicMs())
        if (waitMs > 0) batches = yield* wait(this.#lane.poll(config.maxPollBytes, waitMs))
        this.#check()
      }
      isDrained = batches.length === 0
      if (!isDrained) isBusy = true
      this.#deliver(batches)
    }
    const processed = this.#processed
    this.#process()
    if (this.#processed > processed) isBusy = true
    const isDue = this.#isCommitRequested || clock.monotonicMs() >= this.#lastCommitMs + config.commitIntervalMs
    if (this.#takesWait() || isDue || (isDrained && isEager)) {
      if (yield* this.#commitTakes()) isBusy = true
    }
    const isFull = this.#budget.stagedBytes + this.#outputs.bytes >= config.maxStagedBytes
    if (isFull || isDue || (isDrained && (isEager || this.#outputWaits()))) {
      if (yield* this.#commit()) isBusy = true
    }
    return isBusy
  }

  /** Monotonic: when `step` has something to do without new input; infinity = never. */
  nextDueMs(): number {
    const nowMs = this.#options.clock.monotonicMs()
    if (nowMs < this.#resumeAtMs) return this.#resumeAtMs
    let due = Number.POSITIVE_INFINITY
    const commitMs = this.#lastCommitMs + this.#options.config.commitIntervalMs
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
    if (!this.#outputs.isEmpty || this.manager.outbox?.isIdle === false) return false
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
    yield* this.#commitTakes()
    yield* this.#commit()
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
    this.#resumeAtMs = 0
    const isStaged = !this.#outputs.isEmpty || this.#budget.stagedBytes > 0
    for (const application of this.manager.applications) {
      const isNamed = applicationId === undefined || application.options.applicationId === applicationId
      if (!isNamed && !(isStaged && application.stage === undefined)) continue
      application.startedAt.clear()
      yield* this.manager.initTasks(application)
    }
    this.#outputs.clear()
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
          this.#processed++
          this.#uncommitted++
          if (this.#isCommitRequested) return
          if (this.#budget.stagedBytes + this.#outputs.bytes >= config.maxStagedBytes) return
          if (n % recordsPerTimeCheck === 0 && clock.monotonicMs() >= untilMs) return
        }
      }
    }
  }

  #takesWait(): boolean {
    for (const { stage } of this.manager.applications) if (stage !== undefined && stage.taken > 0) return true
    return false
  }

  /** Something that others wait for is not committed. */
  #outputWaits(): boolean {
    return !this.#outputs.isEmpty || this.#budget.stagedBytes > 0 || this.#isCommitRequested || this.#takesWait()
  }

  /**
   * The atomic unit of all tasks: flush, outputs and changelogs, offsets with epochs; when it is committed the staged
   * writes go into the local stores. False: there was nothing to commit.
   */
  *#commit(): Steps<boolean> {
    const { clock, faults, onEvent } = this.#options
    const startedMs = clock.monotonicMs()
    const applications = this.manager.applications.filter((a) => a.stage === undefined)
    this.#lastCommitMs = startedMs
    this.#isCommitRequested = false
    for (const { tasks } of applications) for (const task of tasks) task.flush()
    for (const { tasks } of applications) for (const task of tasks) task.appendChangelogs()
    const groups = offsetsOf(applications)
    if (this.#outputs.isEmpty && groups.length === 0) return false
    const bytes = this.#outputs.bytes
    const outcome = yield* this.#commitUnit(groups)
    if (outcome.kind !== 'committed') {
      yield* this.#recover(outcome, applications)
      return true
    }
    faults.hit('committed')
    this.#failedCommits = 0
    this.#wrote(this.#outputs.slots())
    this.#outputs.clear()
    for (const { tasks } of applications) for (const task of tasks) applyTo(task, outcome.ends)
    markCommitted(applications, groups)
    onEvent({
      kind: 'committed',
      records: this.#uncommitted,
      bytes,
      durationMs: clock.monotonicMs() - startedMs,
    })
    this.#uncommitted = 0
    return true
  }

  *#commitUnit(groups: readonly GroupOffsets[]): Steps<Outcome> {
    const unit = this.#lane.begin('atomic')
    try {
      this.#outputs.appendTo(unit)
      yield* wait(unit.flush())
    } catch (error) {
      yield* wait(unit.abort())
      throw error
    }
    return yield* wait(unit.commit(groups))
  }

  /**
   * Offsets of async applications, in a unit of their own; then the work that was taken may start. What their
   * processors forwarded themselves is durable before. False: there was nothing to commit.
   */
  *#commitTakes(): Steps<boolean> {
    const applications = this.manager.applications.filter((a) => a.stage !== undefined)
    if (applications.length === 0) return false
    for (const { tasks } of applications) for (const task of tasks) task.flush()
    if (this.#isOutboxAhead) yield* this.manager.outbox!.settled()
    this.#isOutboxAhead = false
    const groups = offsetsOf(applications)
    if (groups.length === 0) return false
    const outcome = yield* wait(this.#lane.begin('idempotent').commit(groups))
    if (outcome.kind !== 'committed') {
      yield* this.#recover(outcome, applications)
      return true
    }
    this.#failedCommits = 0
    markCommitted(applications, groups)
    if (this.#takesWait()) this.#options.faults.hit('visit-committed')
    for (const { stage } of applications) stage!.startTaken()
    return true
  }

  /** The unit is not in the log: back to what is. Atomic tasks begin anew; async ones drop what they took. */
  *#recover(
    outcome: Exclude<Outcome, { kind: 'committed' }>,
    applications: readonly RunningApplication[],
  ): Steps<void> {
    const { clock, onEvent } = this.#options
    if (outcome.kind === 'fatal') throw outcome.error
    onEvent(outcome)
    this.#outputs.clear()
    if (outcome.kind === 'fenced') {
      if (outcome.by === 'producer') yield* this.manager.openLanes()
      for (const application of applications) yield* this.manager.join(application)
    }
    for (const application of applications) {
      if (application.stage === undefined) {
        yield* this.manager.initTasks(application)
        continue
      }
      // Work under way is committed and goes on, so its processors live on too.
      application.stage.dropTakes(0)
      yield* this.manager.positionTasks(application)
    }
    this.#uncommitted = 0
    const delayMs = this.#failedCommits === 0 ? 0 : Math.min(100 * 2 ** (this.#failedCommits - 1), 10_000)
    this.#failedCommits++
    this.#resumeAtMs = clock.monotonicMs() + delayMs
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

  #wrote(slots: readonly Slot[]): void {
    for (const { to } of slots) this.#produced.add(to.topic)
  }
}

const recordsPerTimeCheck = 64

function delay(clock: Clock, delayMs: number): Promise<void> {
  return new Promise((resolve) => clock.setTimer(delayMs, resolve))
}

function offsetsOf(applications: readonly RunningApplication[]): GroupOffsets[] {
  const groups: GroupOffsets[] = []
  for (const { options, epoch, tasks } of applications) {
    let offsets: Map<Input, { next: number }> | undefined
    for (const task of tasks) {
      for (const input of task.options.inputs) {
        if (input.isDirty) (offsets ??= new Map()).set(input.input, { next: input.next })
      }
    }
    if (offsets !== undefined) groups.push({ group: options.applicationId, epoch, offsets })
  }
  return groups
}

function markCommitted(applications: readonly RunningApplication[], groups: readonly GroupOffsets[]): void {
  for (const { options, tasks, startedAt } of applications) {
    const offsets = groups.find((g) => g.group === options.applicationId)?.offsets
    if (offsets === undefined) continue
    for (const task of tasks) {
      for (const input of task.options.inputs) {
        const sent = offsets.get(input.input)
        if (sent === undefined) continue
        input.committed = sent.next
        if (options.resume === 'end') startedAt.set(input.input, sent.next)
      }
    }
  }
}

/** The changelog has it already: a store that refuses it now is restored at the next start. */
function applyTo(task: Task, ends: ReadonlyMap<Partition, number>): void {
  try {
    task.applyStaged(ends)
  } catch (cause) {
    throw new StopProcessError(`applying committed writes to the store of task ${task.name}: ${String(cause)}`, {
      code: 'store-apply',
      cause,
    })
  }
}
