import { createRecordBatch, type RecordBatchBuilder } from '../../connectors/log/batch.ts'
import type { Headers, Partition, Unit } from '../../connectors/log/types.ts'
import { RecordError } from './errors.ts'

/** A partition that is written to, with a number that outputs keep its records under. */
export interface Slot {
  readonly to: Partition
  readonly index: number
}

/** A topic that is written to. */
export interface TargetTopic {
  readonly name: string
  readonly maxRecordBytes: number
  readonly slots: readonly Slot[]
}

/** What one record, punctuation or completion forwarded to sinks, before it is known to have gone well. */
export class Forwards {
  length = 0
  readonly #slots: Slot[] = []
  readonly #keys: (Uint8Array | null)[] = []
  readonly #values: (Uint8Array | null)[] = []
  readonly #timestamps: number[] = []
  readonly #headers: Headers[] = []

  /** Throws RecordError `record-too-large`, `partitioning`. */
  add(
    topic: TargetTopic,
    partition: number,
    key: Uint8Array | null,
    value: Uint8Array | null,
    timestampMs: number,
    headers: Headers,
  ): void {
    const slot = topic.slots[partition]
    if (slot === undefined) {
      throw new RecordError('partitioning', `forwarding to ${topic.name}: it has no partition ${partition}`)
    }
    const size = (key === null ? 0 : key.length) + (value === null ? 0 : value.length) + headersBytes(headers)
    if (size > topic.maxRecordBytes) {
      throw new RecordError(
        'record-too-large',
        `forwarding to ${topic.name}: a record of ${size} bytes, it takes ${topic.maxRecordBytes}`,
      )
    }
    const i = this.length++
    this.#slots[i] = slot
    this.#keys[i] = key
    this.#values[i] = value
    this.#timestamps[i] = timestampMs
    this.#headers[i] = headers
  }

  slot(i: number): Slot {
    return this.#slots[i]!
  }

  copyTo(outputs: Outputs, from: number, to: number): void {
    for (let i = from; i < to; i++) {
      outputs.add(this.#slots[i]!, this.#keys[i]!, this.#values[i]!, this.#timestamps[i]!, this.#headers[i]!)
    }
  }

  truncate(length: number): void {
    this.length = length
  }
}

/** Records on their way into one unit, by partition. */
export class Outputs {
  readonly #batches: (RecordBatchBuilder | undefined)[] = []
  readonly #dirty: Slot[] = []
  #bytes = 0

  get bytes(): number {
    return this.#bytes
  }
  get isEmpty(): boolean {
    return this.#dirty.length === 0
  }

  add(slot: Slot, key: Uint8Array | null, value: Uint8Array | null, timestampMs: number, headers: Headers): void {
    const batch = (this.#batches[slot.index] ??= createRecordBatch())
    if (batch.count === 0) this.#dirty.push(slot)
    const before = batch.byteLength
    batch.add(key, value, timestampMs, headers)
    this.#bytes += batch.byteLength - before
  }

  has(slot: Slot): boolean {
    return (this.#batches[slot.index]?.count ?? 0) > 0
  }

  appendTo(unit: Unit): void {
    for (const slot of this.#dirty) unit.append(slot.to, this.#batches[slot.index]!)
  }

  /** Partitions that hold something. */
  slots(): readonly Slot[] {
    return this.#dirty
  }

  clear(): void {
    for (const slot of this.#dirty) {
      const batch = this.#batches[slot.index]!
      // A burst must not pin its memory for ever.
      if (batch.byteLength > keptBytes) this.#batches[slot.index] = undefined
      else batch.clear()
    }
    this.#dirty.length = 0
    this.#bytes = 0
  }
}

const keptBytes = 1 << 20

function headersBytes(headers: Headers): number {
  let size = 0
  for (const [name, value] of headers) size += 6 + Buffer.byteLength(name) + value.length
  return size
}
