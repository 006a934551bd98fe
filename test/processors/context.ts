import { createVirtualClock } from '../../connectors/clock/virtual.ts'
import type { KeyValueStore, Processor, ProcessorContext, StoreBuilder } from '../../topology/streams/types.ts'

export interface Forwarded {
  readonly child: string | undefined
  readonly key: unknown
  readonly value: unknown
  readonly timestamp: number
}
export interface Bench<K, V> {
  readonly context: ProcessorContext<never, never>
  /** Creates and inits the processor; again = a task that starts anew on the same stores. */
  start(supplier: (context: ProcessorContext<never, never>) => Processor<K, V>): void
  pipe(key: K, value: V | null, timestamp?: number): void
  flush(): void
  /** What was forwarded since the last call, to one child if named. */
  take(child?: string): Forwarded[]
  /** Topics sought to their beginning since the last call. */
  takeSeeks(): string[]
  store<SK, SV>(name: string): KeyValueStore<SK, SV>
}

/** One processor by itself, with stores that keep bytes, so that serdes are used. */
export function createBench<K, V>(stores: readonly StoreBuilder<unknown, unknown>[]): Bench<K, V> {
  let forwarded: Forwarded[] = []
  let seeks: string[] = []
  let timestamp = 0
  let processor: Processor<K, V>
  const open = new Map(stores.map((builder) => [builder.name, memoryStore(builder)]))
  const unused = (): never => {
    throw new Error('not part of this bench')
  }
  const store = <SK, SV>(name: string): KeyValueStore<SK, SV> => {
    const found = open.get(name)
    if (found === undefined) throw new Error(`no store ${name}`)
    return found as unknown as KeyValueStore<SK, SV>
  }
  const context: ProcessorContext<never, never> = {
    applicationId: 'test',
    taskId: '0_0',
    partitions: 1,
    partition: 0,
    forward(record, child) {
      const { key, value } = record
      forwarded.push({ child, key, value, timestamp: record.timestamp ?? timestamp })
    },
    schedule: unused,
    commit: unused,
    getStateStore: store,
    recordMetadata: () => undefined,
    currentSystemTimeMs: () => 0,
    currentStreamTimeMs: () => timestamp,
    clock: createVirtualClock(0),
    seekToBeginning: (topic) => seeks.push(topic),
    caughtUp: () => true,
    position: unused,
    get async(): never {
      return unused()
    },
  }
  return {
    context,
    start(supplier) {
      processor = supplier(context)
      processor.init?.()
    },
    pipe(key, value, at = 1_000) {
      timestamp = at
      processor.process({ key, value, timestamp: at })
    },
    flush: () => processor.flush?.(),
    take(child) {
      const taken = forwarded.filter((record) => child === undefined || record.child === child)
      forwarded = forwarded.filter((record) => !taken.includes(record))
      return taken
    },
    takeSeeks() {
      const taken = seeks
      seeks = []
      return taken
    },
    store,
  }
}

function memoryStore({ keySerde, valueSerde }: StoreBuilder<unknown, unknown>): KeyValueStore<unknown, unknown> {
  const entries = new Map<string, Uint8Array>()
  const hex = (key: unknown): string => Buffer.from(keySerde.serialize(key)).toString('hex')
  return {
    get(key) {
      const bytes = entries.get(hex(key))
      return bytes === undefined ? undefined : valueSerde.deserialize(bytes)
    },
    put: (key, value) => void entries.set(hex(key), Buffer.from(valueSerde.serialize(value))),
    delete: (key) => void entries.delete(hex(key)),
    *range(from, to) {
      const [first, end] = [from === undefined ? '' : hex(from), to === undefined ? undefined : hex(to)]
      for (const key of [...entries.keys()].sort()) {
        if (key < first || (end !== undefined && key >= end)) continue
        yield [keySerde.deserialize(Buffer.from(key, 'hex')), valueSerde.deserialize(entries.get(key)!)]
      }
    },
    approximateNumEntries: () => entries.size,
  }
}
