/**
 * The words of the streams library. They are Kafka Streams' own, so that its users feel at home; what Java does not
 * have (async stages) is marked. Processor API only: no DSL, no joins, no windows.
 */
import type { Clock } from '../../connectors/clock/types.ts'
import type { Headers, TaskId } from '../../connectors/log/types.ts'

export interface Record<K, V> {
  readonly key: K
  /** Null is a tombstone. */
  readonly value: V
  /** Milliseconds since the epoch. A forwarded record keeps its input's; in a punctuation or a completion it is now. */
  readonly timestamp: number
  readonly headers?: Headers
}

export interface Serde<T> {
  serialize(value: T): Uint8Array
  /** Throws on bytes that it cannot read: the record then goes to the dead letters. */
  deserialize(bytes: Uint8Array): T
}

/** Which partition(s) of a topic a record goes to; several = one copy to each (KIP-837). */
export type StreamPartitioner<K, V> = (key: K, value: V | null, partitions: number) => number | readonly number[]
/** Milliseconds since the epoch of a record as read. */
export type TimestampExtractor<K, V> = (record: Record<K, V | null>, previousTimestamp: number) => number

export interface Processor<KIn, VIn> {
  init?(): void
  /** Synchronous. Throws: the record is dead-lettered and what it wrote or forwarded is taken back. */
  process(record: Record<KIn, VIn | null>): void
  /** Called in the flush step of each commit, before outputs are appended: for sums kept since the last commit. */
  flush?(): void
  close?(): void
}
/** One processor a task; the context arrives here, once. */
export type ProcessorSupplier<KIn, VIn, KOut, VOut> = (context: ProcessorContext<KOut, VOut>) => Processor<KIn, VIn>

export type PunctuationType = 'stream-time' | 'wall-clock-time'
export type Punctuator = (timestampMs: number) => void
export interface Cancellable {
  cancel(): void
}
export interface RecordMetadata {
  readonly topic: string
  readonly partition: number
  readonly offset: number
}

export interface ProcessorContext<KOut = unknown, VOut = unknown> {
  readonly applicationId: string
  readonly taskId: TaskId
  /** Number of partitions of the task's inputs (all are equal) and the task's own. */
  readonly partitions: number
  readonly partition: number
  /** To all children, or to the one named (a processor or a sink). Timestamp absent = the current record's, or now. */
  forward<K extends KOut, V extends VOut>(
    record: { key: K; value: V | null; timestamp?: number; headers?: Headers },
    childName?: string,
  ): void
  schedule(intervalMs: number, type: PunctuationType, punctuator: Punctuator): Cancellable
  /** A request: the commit follows soon, not now. */
  commit(): void
  getStateStore<K, V>(name: string): KeyValueStore<K, V>
  /** Of the record being processed; undefined in a punctuation or completion. */
  recordMetadata(): RecordMetadata | undefined
  currentSystemTimeMs(): number
  currentStreamTimeMs(): number
  readonly clock: Clock
  /**
   * Not in Java. The topic's partition of this task is read again from the log's start; the new position is committed
   * together with what was written so far. For processors whose rules changed.
   */
  seekToBeginning(topic: string): void
  /**
   * Not in Java. True once every input of the task has reached the high watermark that was sampled when the task was
   * assigned: what a processor must wait for before it may conclude anything from a missing record.
   */
  caughtUp(): boolean
  /** Not in Java. Next offset this task will read of one of its input topics, and a fresh end of that partition. */
  position(topic: string): { readonly next: number; readonly high: number; readonly highAtMs: number }
  /** Not in Java: see AsyncContext. Throws outside an application whose guarantee is `ack_on_take`. */
  readonly async: AsyncContext
}

/**
 * Async stages (Java has none). In an application with guarantee `ack_on_take`, `process` takes: it names work, which
 * starts when the offset of the record is committed, with member and epoch. Nothing taken is read again; work that is
 * lost comes back through its own lease, never through the log. No state stores, no transactions.
 */
export interface AsyncContext {
  /**
   * `start` runs after the commit; it must call `done` exactly once. At most `maxInFlight` run (input pauses above),
   * one at a time for each key, in order of taking.
   */
  take(key: string, start: (done: () => void) => void): void
  /**
   * A completion as an input event: inside `event` the processor may forward. `acked` is called when all it forwarded
   * is durable in the log. `event` runs before `complete` returns.
   */
  complete(event: () => void, acked?: () => void): void
  /** Work taken and not done. */
  inFlight(): number
}

export interface KeyValueStore<K, V> {
  get(key: K): V | undefined
  put(key: K, value: V): void
  delete(key: K): void
  /** In byte order of the serialized keys, `from` inclusive, `to` exclusive; staged writes are seen. Do not write to the store while iterating. */
  range(
    from: K | undefined,
    to: K | undefined,
    options?: { reverse?: boolean; limit?: number },
  ): Iterable<readonly [K, V]>
  /** Exact for committed entries; staged writes are counted after their commit. */
  approximateNumEntries(): number
}

export interface StoreBuilder<K, V> {
  readonly name: string
  readonly keySerde: Serde<K>
  readonly valueSerde: Serde<V>
}

export type ProcessingGuarantee = 'exactly_once_v2' | 'at_least_once' | 'ack_on_take'
