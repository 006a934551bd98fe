import type { VirtualClock } from '../../connectors/clock/virtual.ts'
import { createRecordBatch } from '../../connectors/log/batch.ts'
import type { Batch, Headers, Log, Unit } from '../../connectors/log/types.ts'
import { partitionOf } from '../../schemas/hash.ts'
import { runSync, wait } from './steps.ts'
import type { Record, Serde, StreamPartitioner } from './types.ts'

/** What an input topic needs of its driver. */
export interface InputHost {
  readonly log: Log
  /** Idempotent, open for good. */
  readonly unit: Unit
  readonly clock: VirtualClock
  run(): void
}

export class TestInputTopic<K, V> {
  readonly #host: InputHost
  readonly #topic: string
  readonly #partitions: number
  readonly #keySerde: Serde<K>
  readonly #valueSerde: Serde<V>
  readonly #partitioner: StreamPartitioner<K, V> | undefined

  constructor(
    host: InputHost,
    topic: string,
    partitions: number,
    keySerde: Serde<K>,
    valueSerde: Serde<V>,
    partitioner: StreamPartitioner<K, V> | undefined,
  ) {
    this.#host = host
    this.#topic = topic
    this.#partitions = partitions
    this.#keySerde = keySerde
    this.#valueSerde = valueSerde
    this.#partitioner = partitioner
  }

  /** Writes one record (timestamp absent = now) and runs until idle. */
  pipeInput(key: K, value: V | null, timestampMs?: number, headers?: Headers): void {
    this.enqueue(key, value, timestampMs, headers)
    this.#host.run()
  }

  pipeKeyValueList(list: Iterable<readonly [K, V | null]>): void {
    for (const [key, value] of list) this.enqueue(key, value)
    this.#host.run()
  }

  /** Writes without running: what comes later finds several records waiting. */
  enqueue(key: K, value: V | null, timestampMs?: number, headers?: Headers): void {
    const keyBytes = this.#keySerde.serialize(key)
    const valueBytes = value === null ? null : this.#valueSerde.serialize(value)
    const to = this.#partitioner?.(key, value, this.#partitions) ?? partitionOf(keyBytes, this.#partitions)
    for (const partition of typeof to === 'number' ? [to] : to) {
      this.enqueueRaw(partition, keyBytes, valueBytes, timestampMs, headers)
    }
  }

  /** Bytes as they are, e.g. such that cannot be deserialized. */
  enqueueRaw(
    partition: number,
    key: Uint8Array | null,
    value: Uint8Array | null,
    timestampMs: number = this.#host.clock.nowMs(),
    headers?: Headers,
  ): void {
    const batch = createRecordBatch(256)
    batch.add(key, value, timestampMs, headers)
    this.#host.unit.append(this.#host.log.partition(this.#topic, partition), batch)
    // A flush, not a commit: that is what a planned failure waits for.
    runSync(wait(this.#host.unit.flush()))
  }
}

/** Reads committed records of a topic from its start, partition by partition. */
export class TestOutputTopic<K, V> {
  readonly #log: Log
  readonly #topic: string
  readonly #keySerde: Serde<K>
  readonly #valueSerde: Serde<V>
  readonly #next: number[]
  readonly #queue: (Record<K, V | null> & { readonly partition: number; readonly offset: number })[] = []

  constructor(log: Log, topic: string, partitions: number, keySerde: Serde<K>, valueSerde: Serde<V>) {
    this.#log = log
    this.#topic = topic
    this.#keySerde = keySerde
    this.#valueSerde = valueSerde
    this.#next = new Array(partitions).fill(0)
  }

  /** Throws when the queue is empty. */
  readRecord(): Record<K, V | null> & { readonly partition: number; readonly offset: number } {
    this.#fill()
    const record = this.#queue.shift()
    if (record === undefined) throw new Error(`reading topic ${this.#topic}: it is empty`)
    return record
  }

  readKeyValue(): readonly [K, V | null] {
    const { key, value } = this.readRecord()
    return [key, value]
  }

  readValue(): V | null {
    return this.readRecord().value
  }

  readRecordsToList(): (Record<K, V | null> & { readonly partition: number; readonly offset: number })[] {
    this.#fill()
    return this.#queue.splice(0)
  }

  readKeyValuesToList(): (readonly [K, V | null])[] {
    return this.readRecordsToList().map(({ key, value }) => [key, value] as const)
  }

  /** The last value of each key. */
  readKeyValuesToMap(): Map<K, V | null> {
    return new Map(this.readKeyValuesToList())
  }

  isEmpty(): boolean {
    return this.getQueueSize() === 0
  }

  getQueueSize(): number {
    this.#fill()
    return this.#queue.length
  }

  #fill(): void {
    for (let partition = 0; partition < this.#next.length; partition++) {
      const from = this.#log.partition(this.#topic, partition)
      for (;;) {
        const batch: Batch | null = runSync(wait(this.#log.read(from, this.#next[partition]!, 1 << 20, 'stable')))
        if (batch === null) break
        for (let i = 0; i < batch.count; i++)
          this.#queue.push({ ...this.#record(batch, i), partition, offset: batch.offset(i) })
        this.#next[partition] = batch.nextOffset
      }
    }
  }

  #record(batch: Batch, i: number): Record<K, V | null> {
    const key = batch.key(i)
    const value = batch.value(i)
    return {
      key: key === null ? (null as K) : this.#keySerde.deserialize(key),
      value: value === null ? null : this.#valueSerde.deserialize(value),
      timestamp: batch.timestamp(i),
      headers: batch.headers(i),
    }
  }
}
