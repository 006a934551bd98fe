/** Planned batches (`planned-batches.ts`) and whoever receives them. */

export interface Receiver<T> {
  /**
   * Called at each start until it resolves: the generation is part of every token and position. `known`: those of the
   * committed positions. A position of another generation is void: its partition is delivered from its beginning.
   */
  open(known: ReadonlySet<string>): Promise<string>
  /** Throws on a record that can never be delivered: it goes to the dead letters. Must not keep the views. */
  prepare(record: InputRecord): T
  /** Resolves with the records that are refused for good; rejects when it must be tried again. */
  deliver(batch: PlannedBatch<T>): Promise<readonly Refused[]>
  /** Whether an error of `open` can never pass. */
  isFatal(error: unknown): boolean
}
export interface InputRecord {
  readonly topic: string
  readonly offset: number
  readonly timestampMs: number
  readonly key: Uint8Array | null
  readonly value: Uint8Array | null
}
export interface Prepared<T> {
  readonly offset: number
  readonly item: T
}
export interface PlannedBatch<T> {
  readonly topic: string
  readonly partition: number
  /** Names the receiver's generation, the log's topic, and the range. */
  readonly token: string
  readonly records: readonly Prepared<T>[]
}
export interface Refused {
  readonly offset: number
  readonly error: unknown
}

export type PlannedBatchesEvent =
  /** Told once, until it is available again. */
  | { readonly kind: 'unavailable'; readonly error: unknown }
  | { readonly kind: 'available' }
  | ({ readonly kind: 'dead-letter'; readonly topic: string; readonly partition: number } & Refused)
  /** Nothing is delivered any more by this process. */
  | { readonly kind: 'failed'; readonly error: unknown }
