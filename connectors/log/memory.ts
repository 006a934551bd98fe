import type { Clock } from '../clock/types.ts'
import { createVirtualClock } from '../clock/virtual.ts'
import { readBatch } from './batch.ts'
import { LogError } from './errors.ts'
import { createHandles, type Handles } from './local/handles.ts'
import { createLocalLog } from './local/log.ts'
import type { Chunks, PartitionLog, Storage, Topic } from './local/storage.ts'
import type { Headers, Log, TopicSpec } from './types.ts'

export interface MemoryLogOptions {
  /** For `maxWaitMs` and `atMs`. Without one time stands still: a poll that waits is ended by a commit alone. */
  readonly clock?: Clock
}

export interface StoredRecord {
  readonly offset: number
  readonly timestamp: number
  readonly key: Uint8Array | null
  readonly value: Uint8Array | null
  readonly headers: Headers
}

export interface MemoryLog extends Log {
  /** The next commit of any lane ends so and changes nothing. `by` is for `fenced`, by default `epoch`. */
  failNextCommit(kind: 'aborted' | 'fenced' | 'fatal', by?: 'epoch' | 'producer'): void
  /** As if the member had been silent too long: it is told what it lost and joins again by its next `next`. */
  evict(group: string, instanceId: string): void
  /** All visible records of a partition in order of offsets. The views stay valid. */
  records(topic: string, partition: number): IterableIterator<StoredRecord>
}

/**
 * A log in memory, for the test driver and the simulation: polls that have data or do not wait, flushes, commits and a
 * lane's ends answer synchronously. It grows for ever.
 */
export function createMemoryLog({ clock = createVirtualClock(0) }: MemoryLogOptions = {}): MemoryLog {
  const handles = createHandles()
  const contents = { topics: new Map(), positions: new Map(), generations: new Map() }
  const log = createLocalLog({ clock, handles, storage: createMemoryStorage(handles), contents })
  return {
    ...log,
    failNextCommit(kind, by = 'epoch') {
      if (kind === 'fenced') log.planFailure({ kind, by })
      else
        log.planFailure({
          kind,
          error: new LogError('write-failed', `a commit that a test planned to be ${kind}`),
        })
    },
    evict: log.coordinator.evict,
    *records(topic, partition) {
      const p = log.resolve({ topic, partition }, 'reading all records')
      const input = handles.input('', topic, partition)
      for (let chunk = 0; chunk < p.chunks.length; chunk++) {
        const base = p.chunks.baseOffset(chunk)
        const end = chunk + 1 < p.chunks.length ? p.chunks.baseOffset(chunk + 1) : p.stable
        const batch = readBatch(p.chunks.bytes(chunk), input, base, end - base)
        for (let i = 0; i < batch.count; i++) {
          yield {
            offset: batch.offset(i),
            timestamp: batch.timestamp(i),
            key: batch.key(i),
            value: batch.value(i),
            headers: batch.headers(i),
          }
        }
      }
    },
  }
}

type MemoryChunks = Chunks & { add(baseOffset: number, bytes: Buffer): void }

function createMemoryStorage(handles: Handles): Storage {
  const chunksOf = new Map<PartitionLog, MemoryChunks>()
  let topicCount = 0
  return {
    createTopic(spec): Topic {
      const partitions: PartitionLog[] = []
      const topic: Topic = { spec, info: infoOf(spec, topicCount++), partitions }
      for (let n = 0; n < spec.partitions; n++) {
        const chunks = createMemoryChunks()
        const log = { handle: handles.partition(spec.name, n), topic, chunks, stable: 0, end: 0 }
        chunksOf.set(log, chunks)
        partitions.push(log)
      }
      return topic
    },
    write(buffer, batches) {
      for (const { to, count, start, end } of batches) {
        chunksOf.get(to)!.add(to.end, Buffer.from(buffer.subarray(start, end)))
        to.end += count
      }
      return undefined
    },
    keepGeneration: () => undefined,
    settled: () => undefined,
    close: () => undefined,
  }
}

function infoOf(spec: TopicSpec, index: number) {
  return {
    name: spec.name,
    partitions: spec.partitions,
    id: `memory-${index}-${spec.name}`,
  }
}

function createMemoryChunks(): MemoryChunks {
  const bases: number[] = []
  const bytes: Buffer[] = []
  return {
    get length() {
      return bases.length
    },
    baseOffset: (chunk) => bases[chunk]!,
    bytes: (chunk) => bytes[chunk]!,
    add(baseOffset, records) {
      bases.push(baseOffset)
      bytes.push(records)
    },
  }
}
