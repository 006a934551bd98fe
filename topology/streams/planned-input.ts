import type { Input, Partition } from '../../connectors/log/types.ts'
import type { Prepared, Refused } from './planned-batches.ts'

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
