import type { TopicSpec } from '../../../connectors/log/types.ts'
import { partitionOf } from '../../../schemas/hash.ts'
import { integerSerde, stringSerde } from '../../../topology/streams/serdes.ts'
import { Topology } from '../../../topology/streams/topology.ts'
import type { ProcessorSupplier, Serde } from '../../../topology/streams/types.ts'

/** A topic for tests. */
export function topic(name: string, partitions = 4, maxRecordBytes = 1 << 20): TopicSpec {
  return { name, partitions, cleanup: 'delete', maxRecordBytes }
}

export const byKey = (key: string, _value: unknown, partitions: number) => partitionOf(key, partitions)

export const counts = { name: 'counts', keySerde: stringSerde, valueSerde: integerSerde }

/** Counts each key and forwards the keys that it sees for the first time. */
export const dedupe: ProcessorSupplier<string, string, string, string> = (context) => {
  const store = context.getStateStore<string, number>('counts')
  return {
    process({ key, value }) {
      const count = store.get(key) ?? 0
      store.put(key, count + 1)
      if (count === 0) context.forward({ key, value })
    },
  }
}

/** `in` → dedupe (counts) → `out`. */
export function dedupeTopology(supplier = dedupe): Topology {
  return new Topology('dedupe')
    .addSource('in', { topics: ['in'], keySerde: stringSerde, valueSerde: stringSerde })
    .addProcessor('dedupe', supplier, ['in'])
    .addSink('out', { topic: 'out', keySerde: stringSerde, valueSerde: stringSerde, partitioner: byKey }, ['dedupe'])
    .addStateStore(counts, ['dedupe'])
}

/** One source, one processor, one sink, all over `in` and `out`. */
export function simpleTopology<VIn, VOut>(
  supplier: ProcessorSupplier<string, VIn, string, VOut>,
  valueIn: Serde<VIn>,
  valueOut: Serde<VOut>,
): Topology {
  return new Topology('simple')
    .addSource('in', { topics: ['in'], keySerde: stringSerde, valueSerde: valueIn })
    .addProcessor('work', supplier, ['in'])
    .addSink('out', { topic: 'out', keySerde: stringSerde, valueSerde: valueOut, partitioner: byKey }, ['work'])
}

/** A small deterministic generator (mulberry32): numbers in [0, 1). */
export function random(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}
