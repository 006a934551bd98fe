import { createRecordBatch, type RecordBatchBuilder } from '../connectors/log/batch.ts'
import type { Log } from '../connectors/log/types.ts'
import { siteOfKey } from '../processors/site.ts'
import { stringSerde, topicSerde } from '../schemas/codec.ts'
import { partitionOf } from '../schemas/hash.ts'
import type { Decision, Parsed } from '../schemas/types.ts'
import { CommandError } from './errors.ts'
import { type TopicName, topicName } from './topics.ts'

export interface ReplayWriter {
  add(topic: 'parsed' | 'decisions', key: string, value: Parsed | Decision): void
  isFull(): boolean
  commit(): Promise<void>
  close(): Promise<void>
}

/**
 * Writes what a replay makes, where the crawl would have written it, one atomic unit a batch. `commit` throws
 * CommandError `replay` when the log does not take it.
 */
export async function openReplayWriter(log: Log, crawl: string, partitions: number): Promise<ReplayWriter> {
  const lane = await log.lane(`${crawl}-replay-parse`)
  const serdes = { parsed: topicSerde<Parsed>('parsed'), decisions: topicSerde<Decision>('decisions') }
  const batches = new Map<string, { topic: TopicName; partition: number; batch: RecordBatchBuilder }>()
  let records = 0
  let bytes = 0
  return {
    add(topic, key, value) {
      const partition = partitionOf(siteOfKey(key), partitions)
      let slot = batches.get(`${topic}/${partition}`)
      if (slot === undefined) {
        slot = { topic, partition, batch: createRecordBatch() }
        batches.set(`${topic}/${partition}`, slot)
      }
      const encoded = (serdes[topic] as { serialize(value: Parsed | Decision): Uint8Array }).serialize(value)
      slot.batch.add(stringSerde.serialize(key), encoded, 'at' in value ? value.at : value.fetchedAt)
      records++
      bytes += encoded.length
    },
    isFull: () => records >= batchRecords || bytes >= batchBytes,
    async commit() {
      if (records === 0) return
      const unit = lane.begin('atomic')
      for (const { topic, partition, batch } of batches.values()) {
        if (batch.count > 0) unit.append(log.partition(topicName(crawl, topic), partition), batch)
      }
      const outcome = await unit.commit([])
      if (outcome.kind !== 'committed') {
        const why = 'error' in outcome ? outcome.error.message : 'another process writes'
        throw new CommandError(
          'replay',
          1,
          `writing ${records} parsed pages: ${why}; run it again, it goes on from there`,
        )
      }
      for (const { batch } of batches.values()) batch.clear()
      records = 0
      bytes = 0
    },
    async close() {
      await lane.close()
    },
  }
}

/** What a kill costs at most, in pages to be parsed again. */
const batchRecords = 100
const batchBytes = 4 << 20
