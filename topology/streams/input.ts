import type { Batch, Input } from '../../connectors/log/types.ts'
import { RecordError } from './errors.ts'
import type { TopologyNode } from './topology.ts'
import type { Record } from './types.ts'

type Source = Extract<TopologyNode, { kind: 'source' }>

/** One input partition of a task: its position and what is buffered of it. */
export class TaskInput {
  readonly input: Input
  readonly source: Source
  /** The first offset that is not processed. */
  next = 0
  /** The position that the log holds for the group; undefined = none. */
  committed: number | undefined
  /** The end of the log when the task was assigned. */
  highAtStart = 0
  isPaused = false
  readonly #batches: Batch[] = []
  #batchAt = 0
  #at = 0
  #partitionTime = -1
  #headTimestamp: number | undefined
  #headRecord: Record<unknown, unknown> | undefined

  constructor(input: Input, source: Source) {
    this.input = input
    this.source = source
  }

  get isDirty(): boolean {
    return this.next !== this.committed && !(this.next === 0 && this.committed === undefined)
  }
  get hasBuffered(): boolean {
    return this.#batchAt < this.#batches.length
  }

  buffer(batch: Batch): void {
    if (batch.count === 0) {
      // Only markers or gaps: the position moves over them once what came before is processed.
      if (!this.hasBuffered) this.next = batch.nextOffset
      return
    }
    this.#batches.push(batch)
  }

  /** Forgets what is buffered; the lane must be assigned again at `next`. */
  dropBuffered(): void {
    this.#batches.length = 0
    this.#batchAt = 0
    this.#at = 0
    this.#headTimestamp = undefined
    this.#headRecord = undefined
  }

  /** Back to a position, as after an abort or a seek. */
  reset(next: number): void {
    this.dropBuffered()
    this.next = next
  }

  batch(): Batch {
    return this.#batches[this.#batchAt]!
  }
  /** The head's index in `batch()`. */
  get at(): number {
    return this.#at
  }

  /** By which inputs are ordered. With an extractor the head has to be read; if it cannot be, its own time counts. */
  headTimestamp(): number {
    if (this.#headTimestamp !== undefined) return this.#headTimestamp
    const extractor = this.source.options.timestampExtractor
    let timestamp = this.batch().timestamp(this.#at)
    if (extractor !== undefined) {
      try {
        this.#headRecord = this.#read(timestamp)
        timestamp = this.#headRecord.timestamp
      } catch {
        // The same error comes again when the record is processed, where it has its consequence.
      }
    }
    return (this.#headTimestamp = timestamp)
  }

  /** The head, deserialized. Throws RecordError `deserialization`, or what the extractor throws. */
  record(): Record<unknown, unknown> {
    const record = this.#headRecord ?? this.#read(this.batch().timestamp(this.#at))
    if (record.timestamp > this.#partitionTime) this.#partitionTime = record.timestamp
    return record
  }

  /** The head is done with. */
  advance(): void {
    const batch = this.batch()
    this.#headTimestamp = undefined
    this.#headRecord = undefined
    if (++this.#at < batch.count) return
    this.next = batch.nextOffset
    this.#at = 0
    if (++this.#batchAt === this.#batches.length) {
      this.#batches.length = 0
      this.#batchAt = 0
    }
  }

  #read(timestamp: number): Record<unknown, unknown> {
    const batch = this.batch()
    const { keySerde, valueSerde, timestampExtractor } = this.source.options
    const keyBytes = batch.key(this.#at)
    const valueBytes = batch.value(this.#at)
    let key: unknown
    let value: unknown
    try {
      key = keyBytes === null ? null : keySerde.deserialize(keyBytes)
    } catch (cause) {
      throw deserializationError('key', this.input, cause)
    }
    try {
      value = valueBytes === null ? null : valueSerde.deserialize(valueBytes)
    } catch (cause) {
      throw deserializationError('value', this.input, cause)
    }
    const record = { key, value, timestamp, headers: batch.headers(this.#at) }
    if (timestampExtractor === undefined) return record
    return {
      ...record,
      timestamp: timestampExtractor(record, this.#partitionTime),
    }
  }
}

function deserializationError(what: 'key' | 'value', { topic }: Input, cause: unknown): RecordError {
  const text = cause instanceof Error ? cause.message : String(cause)
  return new RecordError('deserialization', `reading the ${what} of a record of ${topic}: ${text}`, { cause })
}
