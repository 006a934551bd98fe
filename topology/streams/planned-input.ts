import type { Input, Log, Partition } from '../../connectors/log/types.ts'
import type { TaskPlan } from './application.ts'
import type { Prepared, Receiver, Refused } from './planned-types.ts'

/** One partition as it is delivered. */
export interface PlannedInput<T> {
  readonly input: Input
  readonly partition: Partition
  /** Committed position: everything before it is delivered. */
  next: number
  /** Of the receiver that the position is about. */
  generation: string | undefined
  /** Where the batch ends that is committed as planned. */
  end: number | undefined
  /** That batch, read; it is not delivered. */
  plan: Plan<T> | undefined
}

interface Plan<T> {
  readonly end: number
  /** Of keys and values. */
  readonly bytes: number
  readonly records: readonly Prepared<T>[]
  readonly refused: Refused[]
}

/** What a position's metadata says; nothing on what somebody else wrote. */
export function readPlan(meta: string | undefined): { generation: string | undefined; end: number | undefined } {
  const found = /^([\w.-]+)(?: to (\d{1,15}))?$/.exec(meta ?? '')
  return { generation: found?.[1], end: found?.[2] === undefined ? undefined : Number(found[2]) }
}

export function writePlan(generation: string, end: number | undefined): string {
  return end === undefined ? generation : `${generation} to ${end}`
}

/** What a task reads, each partition at its beginning. */
export function inputsOf<T>(log: Log, group: string, { partition, subTopology }: TaskPlan): PlannedInput<T>[] {
  return subTopology.sources
    .flatMap((source) => source.options.topics)
    .map((topic) => ({
      input: log.input(group, topic, partition),
      partition: log.partition(topic, partition),
      next: 0,
      generation: undefined,
      end: undefined,
      plan: undefined,
    }))
}

export interface Bounds<T> {
  readonly maxRecords: number
  readonly maxBytes: number
  readonly prepare: Receiver<T>['prepare']
}

/**
 * The batch from the position to the end that was planned, or, when none was, as much as a batch may have. Undefined
 * when there is nothing.
 */
export async function readInput<T>(log: Log, input: PlannedInput<T>, bounds: Bounds<T>): Promise<Plan<T> | undefined> {
  const { end } = input
  const { topic } = input.partition
  const records: Prepared<T>[] = []
  const refused: Refused[] = []
  let at = input.next
  let bytes = 0
  let isFull = false
  while (end === undefined ? !isFull : at < end) {
    const batch = await log.read(input.partition, at, Math.min(bounds.maxBytes, chunkBytes), 'stable')
    if (batch === null) break
    for (let i = 0; i < batch.count && !isFull; i++) {
      const offset = batch.offset(i)
      if (end !== undefined && offset >= end) break
      const key = batch.key(i)
      const value = batch.value(i)
      try {
        const item = bounds.prepare({ topic, offset, timestampMs: batch.timestamp(i), key, value })
        records.push({ offset, item })
      } catch (error) {
        refused.push({ offset, error })
      }
      bytes += (key?.length ?? 0) + (value?.length ?? 0)
      at = offset + 1
      isFull = end === undefined && (records.length + refused.length >= bounds.maxRecords || bytes >= bounds.maxBytes)
    }
    if (!isFull) at = Math.max(at, batch.nextOffset)
    await othersTurn()
  }
  const last = end ?? at
  return last === input.next ? undefined : { end: last, bytes, records, refused }
}

/** Timers and sockets get their turn: a log on this machine answers without waiting. */
export function othersTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** What is decoded in one go. */
const chunkBytes = 256 << 10
