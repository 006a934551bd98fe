import type { GroupOffsets, Partition, TopicInfo, TopicSpec } from '../types.ts'

/**
 * What of a partition is kept where: chunks of consecutive records, each as it was appended. Chunks follow each other
 * without gaps.
 */
export interface Chunks {
  readonly length: number
  /** Offset of a chunk's first record. */
  baseOffset(chunk: number): number
  /** The encoded records of a chunk. Synchronous, also where it has to be read from disk. */
  bytes(chunk: number): Buffer
}

/** One partition of a log that lives in this process. */
export type PartitionLog = {
  readonly handle: Partition
  readonly topic: Topic
  readonly chunks: Chunks
  /** Up to here readers see. */
  stable: number
  /** Up to here records have offsets: the end of what is written, durable or not. */
  end: number
}

export type Topic = {
  spec: TopicSpec
  readonly info: TopicInfo
  readonly partitions: readonly PartitionLog[]
}

/** Records of one unit for one partition: `start` and `end` are bytes of the unit's buffer. */
export type PendingBatch = {
  readonly to: PartitionLog
  count: number
  readonly start: number
  end: number
}
export type Position = { readonly next: number; readonly meta?: string }

/** Where a local log keeps things. */
export interface Storage {
  /** Makes a topic that does not exist yet. */
  createTopic(spec: TopicSpec): Topic
  /**
   * Keeps the batches (of `buffer`, to be copied) and offsets together, at once or when the promise resolves; the base
   * offset of each batch is its partition's `end`, which moves on. Throws LogError `write-failed`
   * when nothing of it was kept. Anything else thrown, and every rejection, means that the storage is broken for good.
   */
  write(buffer: Buffer, batches: readonly PendingBatch[], groups: readonly GroupOffsets[]): undefined | Promise<void>
  keepGeneration(group: string, generation: number): undefined | Promise<void>
  /** Resolves when all written so far is durable. */
  settled(): undefined | Promise<void>
  close(): undefined | Promise<void>
}

/** What a storage found when it was opened. */
export type Contents = {
  readonly topics: Map<string, Topic>
  readonly positions: Map<string, Map<Partition, Position>>
  readonly generations: Map<string, number>
}
