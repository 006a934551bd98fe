/**
 * The Log port: the smallest thing that a Kafka cluster, a journal on one disk and an array in memory can all be.
 * Everything that streams knows of the outside goes through it.
 */

export type Partition = { readonly topic: string; readonly partition: number }
/** A partition as one group reads it. `Log.input` returns one object for each, so an Input can key a Map. */
export type Input = Partition & { readonly group: string }

/** `<subtopology>_<partition>`, e.g. `0_3`, as in Kafka Streams. */
export type TaskId = string
export type Header = readonly [name: string, value: Uint8Array]
export type Headers = readonly Header[]

/** Consecutive records of one input. Views on the adapter's memory: valid until the lane's next poll. */
export interface Batch {
  readonly from: Input
  /** The offset to go on from: it skips what the adapter left out (markers, aborted records, gaps). */
  readonly nextOffset: number
  readonly count: number
  offset(i: number): number
  /** Milliseconds since the epoch. */
  timestamp(i: number): number
  headers(i: number): Headers
  key(i: number): Uint8Array | null
  value(i: number): Uint8Array | null
}

/** Records on their way to one partition, encoded into one growing buffer (connectors/log/batch.ts). */
export interface RecordBatch {
  readonly count: number
  readonly byteLength: number
  /** The encoded records, a view: valid until the builder's next use. */
  bytes(): Uint8Array
}

/** What fences: who acts for a group, and in which generation. */
export type Epoch = { readonly memberId: string; readonly generation: number }

export interface Assignment {
  readonly epoch: Epoch
  readonly owned: readonly TaskId[]
  /** May still commit what they did, then must be named in `next(closed)`. */
  readonly revoke: readonly TaskId[]
  /** Belong to somebody else already: whatever they hold must be dropped. */
  readonly lost: readonly TaskId[]
}

/** Pure: which member runs which task. */
export type Assignor = (members: readonly string[]) => ReadonlyMap<string, readonly TaskId[]>

/**
 * An answer now, or a promise of it. The memory log answers everything but a waiting `poll` and a waiting `next` at
 * once, so that the test driver runs whole topologies synchronously; callers elsewhere `await`.
 */
export type MaybePromise<T> = T | Promise<T>

export interface Member {
  /** Resolves with the first assignment, then with each later one. A change is a return value, never a callback. */
  next(closed: readonly TaskId[]): MaybePromise<Assignment>
  leave(why: 'stop' | 'scale-down'): MaybePromise<void>
}

export type Offsets = ReadonlyMap<Input, { readonly next: number; readonly meta?: string }>
export type GroupOffsets = { readonly group: string; readonly epoch: Epoch; readonly offsets: Offsets }

export type Outcome =
  /** `ends`: of each partition appended to, the offset after the last record. */
  | { readonly kind: 'committed'; readonly ends: ReadonlyMap<Partition, number> }
  | { readonly kind: 'aborted'; readonly error: Error }
  | { readonly kind: 'fenced'; readonly by: 'epoch' | 'producer' }
  | { readonly kind: 'fatal'; readonly error: Error }

/** What one commit makes visible together. `idempotent` units have no atomicity: each flush is visible by itself. */
export interface Unit {
  /** True: the appends of one flush become durable in their order, so one flush suffices where order matters. */
  readonly orderedFlush?: boolean
  append(to: Partition, records: RecordBatch): void
  /** All appended so far is acknowledged (durable; visible if the unit is idempotent). Synchronous where it can be. */
  flush(): void | Promise<void>
  /** Ends the unit. Never throws and never leaves the outcome unknown. Synchronous where it can be. */
  commit(groups: readonly GroupOffsets[]): Outcome | Promise<Outcome>
  abort(): void | Promise<void>
}

/** `stable`: the offset up to which committed records can be read; `high`: the end of the log, open units included. */
export type Ends = { readonly stable: number; readonly high: number; readonly atMs: number }

/** One a stream thread, one caller. */
export interface Lane {
  /** Replaces the set of inputs and their positions (next offset to read). */
  assign(at: ReadonlyMap<Input, number>): void
  pause(input: Input, on: boolean): void
  /** Synchronous when something is buffered (or `maxWaitMs` is 0); otherwise a promise that a commit to an input wakes. */
  poll(maxBytes: number, maxWaitMs: number): readonly Batch[] | Promise<readonly Batch[]>
  ends(p: Partition): Ends
  begin(mode: 'atomic' | 'idempotent'): Unit
  close(): MaybePromise<void>
}

export interface TopicSpec {
  readonly name: string
  readonly partitions: number
  readonly cleanup: 'compact' | 'delete' | 'compact,delete'
  /** Milliseconds; absent = unlimited. */
  readonly retentionMs?: number
  /** `min.compaction.lag.ms`. */
  readonly compactionLagMs?: number
  readonly maxRecordBytes: number
}
export interface TopicInfo {
  readonly name: string
  readonly partitions: number
  /** Changes when a topic is deleted and made again: what a store's checkpoint belongs to. */
  readonly id: string
}

export interface Log {
  /** Creates what is missing; refuses (LogError `topic-mismatch`) a topic with another partition count or cleanup. */
  ensure(topics: readonly TopicSpec[]): MaybePromise<readonly TopicInfo[]>
  partition(topic: string, partition: number): Partition
  input(group: string, topic: string, partition: number): Input
  join(group: string, instanceId: string, assign: Assignor): MaybePromise<Member>
  /** `id` is the stable transactional id: opening it again fences the earlier holder. */
  lane(id: string): MaybePromise<Lane>
  /** For restore, standby, replay and tools. Null when there is nothing at `from` or after it. */
  read(p: Partition, from: number, maxBytes: number, isolation: 'stable' | 'high'): MaybePromise<Batch | null>
  ends(p: Partition): MaybePromise<Ends>
  /** Committed positions; absent = none. */
  positions(
    group: string,
    ps: readonly Partition[],
  ): MaybePromise<ReadonlyMap<Partition, { readonly next: number; readonly meta?: string }>>
  close(): MaybePromise<void>
}
