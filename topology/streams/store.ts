import { maxKeyBytes } from '../../connectors/store/errors.ts'
import type { TaskStore } from '../../connectors/store/types.ts'
import { RecordError, StopProcessError } from './errors.ts'
import { Overlay, type StagedEntry, textOf } from './overlay.ts'
import type { KeyValueStore, Serde, StoreBuilder } from './types.ts'

/** What is committed, for status and queries. */
export type ReadOnlyKeyValueStore<K, V> = Pick<KeyValueStore<K, V>, 'get' | 'range' | 'approximateNumEntries'>

/** As in Java: `<application.id>-<store>-changelog`. */
export function changelogTopic(applicationId: string, store: string): string {
  return `${applicationId}-${store}-changelog`
}

/**
 * A key-value store of one task: the committed entries of its TaskStore under the staged writes of the open unit.
 * Serialized keys and values are kept until the commit, so a serde must not use their memory again.
 */
export class StagedStore<K, V> implements KeyValueStore<K, V> {
  readonly name: string
  readonly staged = new Overlay()
  readonly #committed: TaskStore
  readonly #keySerde: Serde<K>
  readonly #valueSerde: Serde<V>
  readonly #maxRecordBytes: number

  /** `maxRecordBytes`: of the changelog topic. */
  constructor(builder: StoreBuilder<K, V>, committed: TaskStore, maxRecordBytes: number) {
    this.name = builder.name
    this.#committed = committed
    this.#keySerde = builder.keySerde
    this.#valueSerde = builder.valueSerde
    this.#maxRecordBytes = maxRecordBytes
  }

  get(key: K): V | undefined {
    const keyBytes = this.#keySerde.serialize(key)
    const entry = this.staged.get(keyBytes)
    const bytes = entry === undefined ? this.#read(keyBytes) : entry.value
    return bytes === undefined || bytes === null ? undefined : this.#valueSerde.deserialize(bytes)
  }

  put(key: K, value: V): void {
    const keyBytes = this.#keySerde.serialize(key)
    const valueBytes = this.#valueSerde.serialize(value)
    checkKey(this.name, keyBytes)
    if (keyBytes.length + valueBytes.length > this.#maxRecordBytes) {
      throw new RecordError(
        'record-too-large',
        `writing to store ${this.name}: ${keyBytes.length + valueBytes.length} bytes, its changelog takes ${this.#maxRecordBytes}`,
      )
    }
    this.staged.set(keyBytes, valueBytes)
  }

  delete(key: K): void {
    const keyBytes = this.#keySerde.serialize(key)
    checkKey(this.name, keyBytes)
    this.staged.set(keyBytes, null)
  }

  *range(
    from: K | undefined,
    to: K | undefined,
    options: { reverse?: boolean; limit?: number } = {},
  ): Generator<readonly [K, V]> {
    let left = options.limit ?? Number.POSITIVE_INFINITY
    if (left <= 0) return
    for (const [key, value] of this.#merged(from, to, options.reverse === true)) {
      yield [this.#keySerde.deserialize(key), this.#valueSerde.deserialize(value)]
      if (--left <= 0) return
    }
  }

  approximateNumEntries(): number {
    return this.#committed.count(this.name)
  }

  #read(keyBytes: Uint8Array): Uint8Array | undefined {
    checkKey(this.name, keyBytes)
    try {
      return this.#committed.get(this.name, keyBytes)
    } catch (cause) {
      // The disk's fault, not the record's: dead-lettering all that follow would help nobody.
      throw new StopProcessError(`reading store ${this.name}: ${String(cause)}`, { code: 'store-read', cause })
    }
  }

  /** Two ordered sequences as one; of equal keys the staged one counts. */
  *#merged(
    from: K | undefined,
    to: K | undefined,
    reverse: boolean,
  ): Generator<readonly [key: Uint8Array, value: Uint8Array]> {
    const low = from === undefined ? undefined : this.#keySerde.serialize(from)
    const high = to === undefined ? undefined : this.#keySerde.serialize(to)
    const committed = this.#committed.range(this.name, low, high, reverse)
    try {
      const staged = this.staged.range(low && textOf(low), high && textOf(high), reverse)
      let entry = staged.next()
      let row = committed.next()
      while (!row.done || !entry.done) {
        const order = compare(entry, row, reverse)
        if (order > 0) {
          if (!row.done) yield row.value
        } else if (!entry.done && entry.value.value !== null) {
          yield [entry.value.key, entry.value.value]
        }
        if (order <= 0) entry = staged.next()
        if (order >= 0) row = committed.next()
      }
    } finally {
      committed.return?.()
    }
  }
}

/** The committed entries of one store. Empty when the task is closed. */
export function readOnlyStore<K, V>(builder: StoreBuilder<K, V>, committed: TaskStore): ReadOnlyKeyValueStore<K, V> {
  return new StagedStore(builder, committed, 0)
}

/** Which comes first: below zero the staged entry, above zero the committed row, zero both (one key). */
function compare(
  entry: IteratorResult<StagedEntry>,
  row: IteratorResult<readonly [Uint8Array, Uint8Array]>,
  reverse: boolean,
): number {
  if (entry.done) return 1
  if (row.done) return -1
  const order = Buffer.compare(entry.value.key, row.value[0])
  return reverse ? -order : order
}

/** Sooner than the store itself would, since that would be after the commit. */
function checkKey(store: string, key: Uint8Array): void {
  if (key.length > 0 && key.length <= maxKeyBytes) return
  throw new RecordError('store-key', `store ${store}: a key of ${key.length} bytes, possible are 1 to ${maxKeyBytes}`)
}
