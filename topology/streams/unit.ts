import type { GroupOffsets, Input, Outcome, Partition } from '../../connectors/log/types.ts'
import { StopProcessError } from './errors.ts'
import { Outputs, type Slot } from './outputs.ts'
import { type Steps, wait } from './steps.ts'
import type { Task } from './task.ts'
import type { RunningApplication, TaskManager, ThreadOptions } from './task-manager.ts'

/** The open unit of one thread, and how it is committed. */
export class ThreadUnit {
  readonly outputs = new Outputs()
  /** Staged bytes of all tasks. */
  readonly budget = { stagedBytes: 0 }
  /** Topics that got records. */
  readonly produced = new Set<string>()
  /** Records processed since the start. */
  processed = 0
  /** A processor asked for a commit. */
  isRequested = false
  /** What processors of async applications forwarded themselves may not be durable yet. */
  isOutboxAhead = false
  /** Monotonic. */
  lastCommitMs = 0
  /** Monotonic; while it lies ahead nothing runs: commits failed one after the other. */
  resumeAtMs = 0
  readonly #options: ThreadOptions
  readonly #findManager: () => TaskManager
  #failedCommits = 0
  #committed = 0

  constructor(options: ThreadOptions, findManager: () => TaskManager) {
    this.#options = options
    this.#findManager = findManager
  }

  get #manager(): TaskManager {
    return this.#findManager()
  }
  /** Staged and output bytes are over the bound. */
  get isFull(): boolean {
    return this.budget.stagedBytes + this.outputs.bytes >= this.#options.config.maxStagedBytes
  }
  get isEmpty(): boolean {
    return this.outputs.isEmpty && this.budget.stagedBytes === 0
  }

  wrote(slots: readonly Slot[]): void {
    for (const { to } of slots) this.produced.add(to.topic)
  }

  takesWait(): boolean {
    for (const { stage } of this.#manager.applications) if (stage !== undefined && stage.taken > 0) return true
    return false
  }

  /** Something that others wait for is not committed. */
  outputWaits(): boolean {
    return !this.outputs.isEmpty || this.budget.stagedBytes > 0 || this.isRequested || this.takesWait()
  }

  /**
   * The atomic unit of all tasks: flush, outputs and changelogs, offsets with epochs; when it is committed the staged
   * writes go into the local stores. False: there was nothing to commit.
   */
  *commit(): Steps<boolean> {
    const { clock, faults, onEvent } = this.#options
    const startedMs = clock.monotonicMs()
    const applications = this.#manager.applications.filter((a) => a.stage === undefined)
    this.lastCommitMs = startedMs
    this.isRequested = false
    for (const { tasks } of applications) for (const task of tasks) task.flush()
    for (const { tasks } of applications) for (const task of tasks) task.appendChangelogs()
    const groups = offsetsOf(applications)
    if (this.outputs.isEmpty && groups.length === 0) return false
    const bytes = this.outputs.bytes
    const outcome = yield* this.#commitUnit(groups)
    if (outcome.kind !== 'committed') {
      this.outputs.clear()
      this.#committed = this.processed
      yield* this.#recover(outcome, applications)
      return true
    }
    faults.hit('committed')
    this.#failedCommits = 0
    this.wrote(this.outputs.slots())
    this.outputs.clear()
    for (const { tasks } of applications) for (const task of tasks) applyTo(task, outcome.ends)
    markCommitted(applications, groups)
    onEvent({
      kind: 'committed',
      records: this.processed - this.#committed,
      bytes,
      durationMs: clock.monotonicMs() - startedMs,
    })
    this.#committed = this.processed
    return true
  }

  *#commitUnit(groups: readonly GroupOffsets[]): Steps<Outcome> {
    const unit = this.#manager.lane.begin('atomic')
    try {
      this.outputs.appendTo(unit)
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
  *commitTakes(): Steps<boolean> {
    const applications = this.#manager.applications.filter((a) => a.stage !== undefined)
    if (applications.length === 0) return false
    for (const { tasks } of applications) for (const task of tasks) task.flush()
    if (this.isOutboxAhead) yield* this.#manager.outbox!.settled()
    this.isOutboxAhead = false
    const groups = offsetsOf(applications)
    if (groups.length === 0) return false
    const outcome = yield* wait(this.#manager.lane.begin('idempotent').commit(groups))
    if (outcome.kind !== 'committed') {
      yield* this.#recover(outcome, applications)
      return true
    }
    this.#failedCommits = 0
    markCommitted(applications, groups)
    if (this.takesWait()) this.#options.faults.hit('visit-committed')
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
    if (outcome.kind === 'fenced') {
      if (outcome.by === 'producer') yield* this.#manager.openLanes()
      for (const application of applications) yield* this.#manager.join(application)
    }
    for (const application of applications) {
      if (application.stage === undefined) {
        yield* this.#manager.initTasks(application)
        continue
      }
      // Work under way is committed and goes on, so its processors live on too.
      application.stage.dropTakes(0)
      yield* this.#manager.positionTasks(application)
    }
    const delayMs = this.#failedCommits === 0 ? 0 : Math.min(100 * 2 ** (this.#failedCommits - 1), 10_000)
    this.#failedCommits++
    this.resumeAtMs = clock.monotonicMs() + delayMs
  }
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
