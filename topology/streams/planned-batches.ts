import type { Clock } from '../../connectors/clock/types.ts'
import { type Faults, noFaults } from '../../connectors/faults/types.ts'
import { createRecordBatch } from '../../connectors/log/batch.ts'
import type { Epoch, Lane, Log, Member, TopicSpec } from '../../connectors/log/types.ts'
import { planTasks, roundRobin } from './application.ts'
import { deadLetterHeaders } from './dead-letters.ts'
import { inputsOf, othersTurn, type PlannedInput, readInput, readPlan, writePlan } from './planned-input.ts'
import type { PlannedBatchesEvent, Receiver, Refused } from './planned-types.ts'
import type { Topology } from './topology.ts'

/**
 * Delivers a log to something outside that waits on a network, exactly once: Java has none (there it is a Connect
 * sink). Before a batch is delivered its end is committed in the metadata of the position, which itself stays; after a
 * crash exactly that range is delivered again under the same token, by which the receiver knows it; then the end is
 * committed. It has a group member and a lane of its own, outside every stream thread's transaction.
 */
export interface PlannedBatchesOptions<T> {
  readonly log: Log
  readonly clock: Clock
  readonly applicationId: string
  readonly instanceId: string
  /** Its sources say what is read. */
  readonly topology: Topology
  /** The catalogue: every topic that is read, and the dead-letter topic. */
  readonly topics: readonly TopicSpec[]
  readonly deadLetterTopic: string
  readonly receiver: Receiver<T>
  /** Bounds of a batch of one partition; a record that is over the bytes is one by itself. */
  readonly maxRecords?: number
  readonly maxBytes?: number
  /** How long a record waits for others. */
  readonly lingerMs?: number
  readonly onEvent?: (event: PlannedBatchesEvent) => void
  readonly faults?: Faults
}

export interface PlannedBatches {
  start(): void
  /** Records that are not delivered. */
  lag(): number
  isAvailable(): boolean
  /** Nothing is delivered any more by this process. */
  hasFailed(): boolean
  /**
   * Resolves when all that is in the log now is delivered, with 0; or with what is left when nothing could be delivered
   * for `patienceMs`, or it has failed.
   */
  drain(patienceMs: number): Promise<number>
  /** What is under way may end; what is planned stays so. */
  close(): Promise<void>
}

const tickMs = 100
const maxBackOffMs = 10_000
/** Batches of full size that are in memory at a time. */
const maxRoundBatches = 4

export function createPlannedBatches<T>(options: PlannedBatchesOptions<T>): PlannedBatches {
  const { log, clock, applicationId, instanceId, receiver, maxRecords = 10_000, maxBytes = 2 << 20 } = options
  const { lingerMs = 1_000, onEvent = () => {}, faults = noFaults } = options
  const plans = planTasks(
    { applicationId, topology: options.topology, guarantee: 'at_least_once' },
    new Map(options.topics.map((t) => [t.name, t])),
  )
  const specs = new Map(options.topics.map((t) => [t.name, t]))
  const topicIds = new Map<string, string>()
  let inputs: PlannedInput<T>[] = []
  let member: Member | undefined
  let epoch: Epoch | undefined
  let lane: Lane | undefined
  let generation = ''
  let isOpen = false
  let isClosing = false
  let hasFailed = false
  let isAvailable = true
  let attempts = 0
  let deliveredAtMs = 0
  let isUrgent = false
  let first = 0
  let wake: (() => void) | undefined
  let running: Promise<void> | undefined

  async function run(): Promise<void> {
    let waitingSinceMs: number | undefined
    while (!isClosing) {
      try {
        if (lane === undefined) await join()
        if (!isOpen) await openReceiver()
        const lag = lagNow()
        if (lag === 0) waitingSinceMs = undefined
        else waitingSinceMs ??= clock.monotonicMs()
        const isDue = waitingSinceMs !== undefined && clock.monotonicMs() - waitingSinceMs >= lingerMs
        const isPlanned = inputs.some((input) => input.plan !== undefined)
        if (lag > 0 && (isDue || isUrgent || isPlanned || lag >= maxRecords)) {
          await round()
          waitingSinceMs = undefined
          succeeded()
        } else await pause(tickMs)
      } catch (error) {
        if (error instanceof FencedError) {
          await leave()
          continue
        }
        if (error instanceof FatalError || receiver.isFatal(error)) {
          hasFailed = true
          onEvent({ kind: 'failed', error })
          return
        }
        // What the log could not write is no news of the receiver.
        if (!(error instanceof AbortedError)) {
          if (isAvailable) onEvent({ kind: 'unavailable', error })
          isAvailable = false
        }
        await pause(Math.min(250 * 2 ** attempts++, maxBackOffMs))
      }
    }
  }

  /** The group, the lane and the committed positions. */
  async function join(): Promise<void> {
    for (const { name, id } of await log.ensure(options.topics)) topicIds.set(name, id)
    member = await log.join(applicationId, instanceId, roundRobin(plans))
    const assignment = await member.next([])
    epoch = assignment.epoch
    lane = await log.lane(`${applicationId}-${instanceId}`)
    inputs = plans
      .filter(({ id }) => assignment.owned.includes(id))
      .flatMap((plan) => inputsOf<T>(log, applicationId, plan))
    const positions = await log.positions(
      applicationId,
      inputs.map(({ partition }) => partition),
    )
    for (const input of inputs) {
      const position = positions.get(input.partition)
      input.next = position?.next ?? 0
      Object.assign(input, readPlan(position?.meta))
    }
    lane.assign(new Map(inputs.map(({ input, next }) => [input, next])))
    isOpen = false
  }

  async function openReceiver(): Promise<void> {
    const known = new Set(inputs.flatMap((input) => (input.generation === undefined ? [] : [input.generation])))
    generation = await receiver.open(known)
    for (const input of inputs) {
      if (input.generation === generation) continue
      input.next = 0
      input.end = undefined
      input.generation = generation
    }
    isOpen = true
    deliveredAtMs = clock.monotonicMs()
  }

  /** One batch of every input that has something: plan, deliver, commit. */
  async function round(): Promise<void> {
    const fresh: PlannedInput<T>[] = []
    let bytes = 0
    // Inputs take turns in being first: a round has a bound, and none may starve.
    first = (first + 1) % inputs.length
    for (const input of [...inputs.slice(first), ...inputs.slice(0, first)]) {
      if (input.plan === undefined && bytes < maxRoundBatches * maxBytes) {
        input.plan = await readInput(log, input, { maxRecords, maxBytes, prepare: receiver.prepare })
        if (input.plan !== undefined && input.end === undefined) fresh.push(input)
      }
      bytes += input.plan?.bytes ?? 0
    }
    if (fresh.length > 0) {
      await commitPlans(fresh)
      faults.hit('batch-planned')
    }
    const planned = inputs.filter((input) => input.plan !== undefined)
    const deliveries: Promise<{ error: unknown } | undefined>[] = []
    for (const input of planned) {
      deliveries.push(
        deliver(input).then(
          () => undefined,
          (error: unknown) => ({ error }),
        ),
      )
      await othersTurn()
    }
    const failures = await Promise.all(deliveries)
    const done = planned.filter((_, i) => failures[i] === undefined)
    if (done.length > 0) {
      faults.hit('batch-delivered')
      await commitDone(done)
    }
    const failed = failures.find((failure) => failure !== undefined)
    if (failed !== undefined) throw failed.error
  }

  /** What is not written down must not be delivered: a crash would deliver another range. */
  async function commitPlans(fresh: readonly PlannedInput<T>[]): Promise<void> {
    try {
      await commit(fresh, (input) => [input.next, writePlan(generation, input.plan!.end)])
    } catch (error) {
      for (const input of fresh) input.plan = undefined
      throw error
    }
    for (const input of fresh) input.end = input.plan!.end
  }

  async function deliver({ partition, next, plan }: PlannedInput<T>): Promise<void> {
    const { topic, partition: number } = partition
    const range = `${next}-${plan!.end}`
    const token = [applicationId, generation, topicIds.get(topic), number, range].join(':')
    const refused = await receiver.deliver({ topic, partition: number, token, records: plan!.records })
    plan!.refused.push(...refused)
  }

  /** The ends, and what was refused as dead letters, in one unit. */
  async function commitDone(done: readonly PlannedInput<T>[]): Promise<void> {
    const letters: { input: PlannedInput<T>; refused: Refused }[] = []
    for (const input of done) for (const refused of input.plan!.refused) letters.push({ input, refused })
    await commit(done, (input) => [input.plan!.end, writePlan(generation, undefined)], letters)
    for (const input of done) {
      input.next = input.plan!.end
      input.plan = undefined
      input.end = undefined
    }
    deliveredAtMs = clock.monotonicMs()
    for (const { input, refused } of letters) onEvent({ kind: 'dead-letter', ...input.partition, ...refused })
  }

  async function commit(
    which: readonly PlannedInput<T>[],
    positionOf: (input: PlannedInput<T>) => readonly [next: number, meta: string],
    letters: readonly { input: PlannedInput<T>; refused: Refused }[] = [],
  ): Promise<void> {
    const unit = lane!.begin('atomic')
    for (const { input, refused } of letters) {
      const count = specs.get(options.deadLetterTopic)!.partitions
      const to = log.partition(options.deadLetterTopic, input.partition.partition % count)
      const letter = createRecordBatch()
      const batch = await log.read(input.partition, refused.offset, 1, 'stable')
      if (batch === null || batch.count === 0) continue
      const headers = deadLetterHeaders(refused.error, { ...input.partition, offset: refused.offset }, batch.headers(0))
      letter.add(batch.key(0), batch.value(0), clock.nowMs(), headers)
      unit.append(to, letter)
    }
    const offsets = new Map(
      which.map((input) => {
        const [next, meta] = positionOf(input)
        return [input.input, { next, meta }]
      }),
    )
    const outcome = await unit.commit([{ group: applicationId, epoch: epoch!, offsets }])
    if (outcome.kind === 'committed') return
    if (outcome.kind === 'fenced') throw new FencedError(`fenced by ${outcome.by}`)
    if (outcome.kind === 'fatal') throw new FatalError(outcome.error.message, { cause: outcome.error })
    throw new AbortedError(outcome.error.message, { cause: outcome.error })
  }

  function lagNow(): number {
    const held = lane
    if (held === undefined) return 0
    return inputs.reduce((sum, { partition, next }) => sum + Math.max(0, held.ends(partition).stable - next), 0)
  }

  function succeeded(): void {
    attempts = 0
    if (!isAvailable) onEvent({ kind: 'available' })
    isAvailable = true
  }

  async function pause(ms: number): Promise<void> {
    if (isClosing) return
    await new Promise<void>((resolve) => {
      const timer = clock.setTimer(ms, resolve)
      wake = () => {
        timer.cancel()
        resolve()
      }
    })
    wake = undefined
  }

  async function leave(): Promise<void> {
    await lane?.close()
    lane = undefined
    await member?.leave('stop')
    member = undefined
    inputs = []
  }

  return {
    start() {
      running ??= run().catch((error: unknown) => {
        hasFailed = true
        onEvent({ kind: 'failed', error })
      })
    },
    lag: () => (hasFailed ? 0 : lagNow()),
    isAvailable: () => isAvailable && !hasFailed,
    hasFailed: () => hasFailed,
    async drain(patienceMs) {
      isUrgent = true
      const sinceMs = clock.monotonicMs()
      const isHopeless = () => clock.monotonicMs() - Math.max(sinceMs, deliveredAtMs) > patienceMs
      while (!hasFailed && !isClosing && (lane === undefined || lagNow() > 0) && !isHopeless()) {
        if (isAvailable) wake?.()
        await new Promise<void>((resolve) => void clock.setTimer(20, resolve))
      }
      return lagNow()
    },
    async close() {
      isClosing = true
      wake?.()
      await running
      await leave()
    },
  }
}

/** Another member, or another holder of the lane, has taken over. */
class FencedError extends Error {}
/** The log did not take the commit; it may take the next one. */
class AbortedError extends Error {}
class FatalError extends Error {}
