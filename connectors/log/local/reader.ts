import { fitRecords, readBatch, skipRecords } from '../batch.ts'
import { LogError } from '../errors.ts'
import type { Batch, Input } from '../types.ts'
import type { Chunks, PartitionLog } from './storage.ts'

/** Reads one partition from a position on. */
export interface Reader {
  readonly log: PartitionLog
  readonly position: number
  /** Encoded size of the batch that `next` returned last. */
  readonly lastBytes: number
  /**
   * The next batch of visible records with at most `maxBytes`, or undefined. `atLeastOne`: a record that is larger is
   * returned alone. Throws LogError `offset-out-of-range`.
   */
  next(maxBytes: number, atLeastOne: boolean): Batch | undefined
}

export function createReader(log: PartitionLog, from: Input, start: number): Reader {
  let position = start
  let lastBytes = 0
  let chunk = -1
  /** The chunk that is partly read, and where its unread records begin. */
  let bytes: Buffer | undefined
  let at = 0

  function load(): Buffer {
    if (bytes !== undefined) return bytes
    const { chunks } = log
    const isNext = chunk >= 0 && chunk + 1 < chunks.length && chunks.baseOffset(chunk + 1) === position
    chunk = isNext ? chunk + 1 : findChunk(chunks, position)
    bytes = chunks.bytes(chunk)
    at = skipRecords(bytes, 0, position - chunks.baseOffset(chunk))
    return bytes
  }

  return {
    log,
    get position() {
      return position
    },
    get lastBytes() {
      return lastBytes
    },
    next(maxBytes, atLeastOne) {
      if (position >= log.stable) {
        if (position > log.end) throw outOfRange(log, position)
        return undefined
      }
      if (position < 0) throw outOfRange(log, position)
      const buffer = load()
      const chunkEnd = chunk + 1 < log.chunks.length ? log.chunks.baseOffset(chunk + 1) : log.end
      let count = chunkEnd - position
      let end = buffer.length
      if (end - at > maxBytes) {
        ;[count, end] = fitRecords(buffer, at, count, maxBytes)
        if (count === 0) {
          if (!atLeastOne) return undefined
          count = 1
          end = skipRecords(buffer, at, 1)
        }
      }
      const batch = readBatch(buffer, from, position, count, at)
      lastBytes = end - at
      position += count
      at = end
      if (position === chunkEnd) bytes = undefined
      return batch
    },
  }
}

/** The chunk that holds the record at `offset`. */
function findChunk(chunks: Chunks, offset: number): number {
  let low = 0
  let high = chunks.length - 1
  while (low < high) {
    const middle = (low + high + 1) >>> 1
    if (chunks.baseOffset(middle) <= offset) low = middle
    else high = middle - 1
  }
  return low
}

function outOfRange(log: PartitionLog, position: number): LogError {
  const { topic, partition } = log.handle
  return new LogError(
    'offset-out-of-range',
    `reading ${topic}/${partition} from offset ${position}: it has 0 to ${log.end}`,
  )
}
