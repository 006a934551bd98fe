import type { Clock } from '../../connectors/clock/types.ts'
import type { Faults } from '../../connectors/faults/types.ts'
import type { Epoch, Input, Lane, Log, Member, TopicSpec } from '../../connectors/log/types.ts'
import type { StoreProvider } from '../../connectors/store/types.ts'
import { type ApplicationOptions, changelogSpecs, planTasks, roundRobin, type TaskPlan } from './application.ts'
import { AsyncStage } from './async-stage.ts'
import type { StreamsConfig } from './config.ts'
import { TopologyError } from './errors.ts'
import type { StreamsEvent } from './events.ts'
import { TaskInput } from './input.ts'
import { Outbox } from './outbox.ts'
import type { TargetTopic } from './outputs.ts'
import { type Changelog, restore } from './restore.ts'
import { type Steps, wait } from './steps.ts'
import { changelogTopic, StagedStore } from './store.ts'
import { Task, type TaskEnv } from './task.ts'

export interface ThreadOptions {
  readonly log: Log
  readonly stores: StoreProvider
  readonly clock: Clock
  readonly faults: Faults
  readonly topics: readonly TopicSpec[]
  readonly applications: readonly ApplicationOptions[]
  readonly config: StreamsConfig
  readonly onEvent: (event: StreamsEvent) => void
  /** Runs a flush of the outbox by itself. A failure must come back by `StreamThread.fail`. */
  readonly launch: (steps: Steps<void>) => void
}

/** An application as this thread runs it. */
export interface RunningApplication {
  readonly options: ApplicationOptions
  readonly plans: readonly TaskPlan[]
  readonly stage: AsyncStage | undefined
  member: Member | undefined
  epoch: Epoch
  tasks: Task[]
  /** With `resume: 'end'`: where this run started, then what it committed. */
  readonly startedAt: Map<Input, number>
}

/** The applications of one thread: their topics, lanes, groups and tasks. */
export class TaskManager {
  readonly applications: RunningApplication[] = []
  /** Polls all inputs and commits; made by `start`. */
  lane!: Lane
  /** Of what async stages write; undefined where there is none. */
  outbox: Outbox | undefined
  readonly #options: ThreadOptions
  readonly #env: TaskEnv
  readonly #onWorkError: (application: ApplicationOptions, error: unknown) => void
  readonly #targets = new Map<string, TargetTopic>()
  readonly #topicIds = new Map<string, string>()
  readonly #inputOf = new Map<Input, TaskInput>()
  #outboxLane: Lane | undefined
  #slotCount = 0
  #tasks: readonly Task[] = []

  /** `onWorkError`: what the start of an async work threw. */
  constructor(
    options: ThreadOptions,
    env: TaskEnv,
    onWorkError: (application: ApplicationOptions, error: unknown) => void,
  ) {
    this.#options = options
    this.#env = env
    this.#onWorkError = onWorkError
  }

  tasks(): readonly Task[] {
    return this.#tasks
  }

  inputOf(input: Input): TaskInput | undefined {
    return this.#inputOf.get(input)
  }

  /** A topic of the catalogue or a changelog, as something to write to. */
  target(name: string): TargetTopic {
    return this.#targets.get(name)!
  }

  /** Topics, lanes, groups, tasks. */
  *start(): Steps<void> {
    const { log, applications, topics } = this.#options
    const catalogue = new Map(topics.map((t) => [t.name, t]))
    const { deadLetterTopic, changelogMaxRecordBytes } = this.#options.config
    if (deadLetterTopic !== undefined && !catalogue.has(deadLetterTopic)) {
      throw new TopologyError(`the dead-letter topic "${deadLetterTopic}" is not in the catalogue`)
    }
    if (new Set(applications.map((a) => a.applicationId)).size !== applications.length) {
      throw new TopologyError('two applications have one applicationId')
    }
    const specs = [...topics]
    for (const options of applications) {
      const plans = planTasks(options, catalogue)
      specs.push(...changelogSpecs(options, plans, changelogMaxRecordBytes))
      const isAsync = options.guarantee === 'ack_on_take'
      const stage = isAsync
        ? new AsyncStage(options.maxInFlight ?? defaultMaxInFlight, (error) => this.#onWorkError(options, error))
        : undefined
      const epoch = { memberId: '', generation: -1 }
      this.applications.push({
        options,
        plans,
        stage,
        member: undefined,
        epoch,
        tasks: [],
        startedAt: new Map(),
      })
    }
    for (const info of yield* wait(log.ensure(specs))) this.#topicIds.set(info.name, info.id)
    for (const spec of specs) this.#addTarget(spec)
    yield* this.openLanes()
    for (const application of this.applications) {
      yield* this.join(application)
      yield* this.initTasks(application)
    }
  }

  /** Opening a lane fences its earlier holder. */
  *openLanes(): Steps<void> {
    const { log, config, launch } = this.#options
    this.lane = yield* wait(log.lane(`${config.instanceId}-0`))
    this.#env.repositioned()
    if (this.outbox !== undefined || !this.applications.some((a) => a.stage !== undefined)) return
    this.#outboxLane = yield* wait(log.lane(`${config.instanceId}-0-outbox`))
    this.outbox = new Outbox(this.#outboxLane, launch, this.#env.wrote)
  }

  /** Closes stores, groups and lanes. */
  *release(): Steps<void> {
    for (const { taskStore } of this.tasks().map((t) => t.options)) {
      if (taskStore === undefined) continue
      yield* wait(taskStore.sync())
      yield* wait(taskStore.close())
    }
    for (const { member } of this.applications) if (member !== undefined) yield* wait(member.leave('stop'))
    yield* wait(this.lane?.close())
    yield* wait(this.#outboxLane?.close())
  }

  /** Joins the group (again) and makes the tasks that it owns now; those that it lost are closed. */
  *join(application: RunningApplication): Steps<void> {
    const { log } = this.#options
    const { applicationId } = application.options
    const member = yield* wait(log.join(applicationId, this.#options.config.instanceId, roundRobin(application.plans)))
    const { epoch, owned } = yield* wait(member.next([]))
    application.member = member
    application.epoch = epoch
    const before = application.tasks
    application.tasks = application.plans
      .filter((plan) => owned.includes(plan.id))
      .map((plan) => before.find((task) => task.options.id === plan.id) ?? this.#createTask(application, plan))
    this.#tasks = this.applications.flatMap((a) => a.tasks)
    for (const task of before) {
      if (application.tasks.includes(task)) continue
      task.close()
      for (const { input } of task.options.inputs) {
        this.#inputOf.delete(input)
      }
      yield* wait(task.options.taskStore?.close())
    }
    this.#env.repositioned()
  }

  #createTask(application: RunningApplication, plan: TaskPlan): Task {
    const { log, stores } = this.#options
    const { applicationId, guarantee } = application.options
    const { subTopology, partition } = plan
    const inputs = subTopology.sources.flatMap((source) =>
      source.options.topics.map((topic) => new TaskInput(log.input(applicationId, topic, partition), source)),
    )
    const names = subTopology.stores.map((s) => s.name)
    const taskStore = names.length === 0 ? undefined : stores.open(applicationId, plan.id, names)
    const changelogs = names.map((store): Changelog => {
      const topic = changelogTopic(applicationId, store)
      return {
        store,
        partition: log.partition(topic, partition),
        topicId: this.#topicIds.get(topic)!,
      }
    })
    const task = new Task({
      ...plan,
      applicationId,
      guarantee,
      inputs,
      taskStore,
      changelogs,
      stores: subTopology.stores.map(
        (s) => new StagedStore(s, taskStore!, this.#options.config.changelogMaxRecordBytes),
      ),
      stage: application.stage,
      outbox: application.stage && this.outbox,
      env: this.#env,
    })
    for (const input of inputs) {
      this.#inputOf.set(input.input, input)
    }
    return task
  }

  /** Closes the tasks dirty, positions and restores them and makes new processors. */
  *initTasks(application: RunningApplication): Steps<void> {
    const { tasks } = application
    const { log, onEvent } = this.#options
    const { applicationId } = application.options
    for (const task of tasks) task.close()
    application.stage?.dropDead()
    yield* this.positionTasks(application)
    for (const task of tasks) {
      const { taskStore, changelogs, id } = task.options
      const restored =
        taskStore === undefined ? 0 : yield* restore(log, taskStore, changelogs, this.#options.config.restoreBatchBytes)
      task.init()
      onEvent({ kind: 'task-ready', applicationId, taskId: id, restored })
    }
    this.#env.repositioned()
  }

  /** To the committed positions. */
  *positionTasks(application: RunningApplication): Steps<void> {
    const { tasks } = application
    const { log } = this.#options
    const { applicationId, resume } = application.options
    const inputs = tasks.flatMap((t) => t.options.inputs)
    const partitions = inputs.map(({ input }) => log.partition(input.topic, input.partition))
    const positions = yield* wait(log.positions(applicationId, partitions))
    for (const [i, input] of inputs.entries()) {
      const committed = positions.get(partitions[i]!)?.next
      let next = committed ?? 0
      if (resume === 'end') {
        const start = application.startedAt.get(input.input)
        next = start === undefined ? this.lane.ends(input.input).stable : Math.max(start, next)
        application.startedAt.set(input.input, next)
      }
      input.committed = committed
      input.reset(next)
    }
    this.#env.repositioned()
  }

  #addTarget({ name, partitions, maxRecordBytes }: TopicSpec): void {
    const slots = Array.from({ length: partitions }, (_, partition) => ({
      to: this.#options.log.partition(name, partition),
      index: this.#slotCount++,
    }))
    this.#targets.set(name, { name, maxRecordBytes, slots })
  }
}

const defaultMaxInFlight = 256
