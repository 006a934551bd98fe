import { bytesSerde, stringSerde, topicSerde } from '../../schemas/codec.ts'
import type { KeyValueStore, StoreBuilder } from '../../topology/streams/types.ts'
import type { CountsRecord, HostRecord, PageRecord } from './records.ts'

/** The six stores of one task of schedule. */
export interface ScheduleStores {
  /** host → what is known of it. */
  readonly hosts: KeyValueStore<string, HostRecord>
  /** Hex XXH64 of a robots.txt body → the body. */
  readonly robots: KeyValueStore<string, Uint8Array>
  /** (time, host) → class of the head of its queue; one entry for each host that has anything to wait for. */
  readonly due: KeyValueStore<Uint8Array, Uint8Array>
  /** The lists of each host, see keys.ts. */
  readonly frontier: KeyValueStore<Uint8Array, Uint8Array>
  /** urlHash → the URL. */
  readonly pages: KeyValueStore<Uint8Array, PageRecord>
  /** `all`, and `site:<site>` → sums. */
  readonly counts: KeyValueStore<string, CountsRecord>
}
export type ReadOnlyScheduleStores = {
  readonly [name in keyof ScheduleStores]: Pick<ScheduleStores[name], 'get' | 'range'>
}

export const scheduleStoreNames = ['hosts', 'robots', 'due', 'frontier', 'pages', 'counts'] as const

/** What the topology adds for the processor. */
export function scheduleStores(): StoreBuilder<unknown, unknown>[] {
  const builders: {
    [name in keyof ScheduleStores]: BuilderOf<ScheduleStores[name]>
  } = {
    hosts: {
      name: 'hosts',
      keySerde: stringSerde,
      valueSerde: topicSerde<HostRecord>('stores/hosts'),
    },
    robots: { name: 'robots', keySerde: stringSerde, valueSerde: bytesSerde },
    due: { name: 'due', keySerde: bytesSerde, valueSerde: bytesSerde },
    frontier: {
      name: 'frontier',
      keySerde: bytesSerde,
      valueSerde: bytesSerde,
    },
    pages: {
      name: 'pages',
      keySerde: bytesSerde,
      valueSerde: topicSerde<PageRecord>('stores/pages'),
    },
    counts: {
      name: 'counts',
      keySerde: stringSerde,
      valueSerde: topicSerde<CountsRecord>('stores/counts'),
    },
  }
  return scheduleStoreNames.map((name) => builders[name] as StoreBuilder<unknown, unknown>)
}

/** From whatever gives a store by its name: a context, a test driver, a task's read-only view. */
export function openStores(open: <K, V>(name: string) => KeyValueStore<K, V>): ScheduleStores {
  return {
    hosts: open('hosts'),
    robots: open('robots'),
    due: open('due'),
    frontier: open('frontier'),
    pages: open('pages'),
    counts: open('counts'),
  }
}

type BuilderOf<S> = S extends KeyValueStore<infer K, infer V> ? StoreBuilder<K, V> : never
