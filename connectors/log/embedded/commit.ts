/**
 * The body of a commit frame, little-endian. u32 count of batches, each: u16 topic (by order of creation), u16
 * partition, f64 base offset, u32 count of records, u32 byte length, records (connectors/log/batch.ts). u32 count of
 * groups, each: string group, string member id, i32 generation, u32 count of offsets, each: u16 topic, u16 partition,
 * f64 next offset, string metadata. A string: i32 byte length (-1 = absent), UTF-8.
 */
import type { PendingBatch } from '../local/storage.ts'
import type { GroupOffsets, Partition } from '../types.ts'

/** Of a batch, before its records. */
export const batchHeadBytes = 20

export type CommitReader = {
  /** `position`, `length`: of the encoded records, counted from the body's first byte. */
  batch(topic: number, partition: number, baseOffset: number, count: number, position: number, length: number): void
  offset(group: string, topic: number, partition: number, next: number, meta: string | undefined): void
}

export function commitBytes(batches: readonly PendingBatch[], groups: readonly GroupOffsets[]): number {
  let bytes = 8
  for (const { start, end } of batches) bytes += batchHeadBytes + end - start
  for (const { group, epoch, offsets } of groups) {
    bytes += 16 + Buffer.byteLength(group) + Buffer.byteLength(epoch.memberId)
    for (const { meta } of offsets.values()) bytes += 16 + (meta === undefined ? 0 : Buffer.byteLength(meta))
  }
  return bytes
}

/** Writes `commitBytes` bytes at `start`. What `topicNumber` throws passes through. */
export function writeCommit(
  target: Buffer,
  start: number,
  source: Buffer,
  batches: readonly PendingBatch[],
  groups: readonly GroupOffsets[],
  baseOffsets: readonly number[],
  topicNumber: (p: Partition) => number,
): void {
  let at = target.writeUInt32LE(batches.length, start)
  for (let i = 0; i < batches.length; i++) {
    const batch = batches[i]!
    target.writeUInt16LE(topicNumber(batch.to.handle), at)
    target.writeUInt16LE(batch.to.handle.partition, at + 2)
    target.writeDoubleLE(baseOffsets[i]!, at + 4)
    target.writeUInt32LE(batch.count, at + 12)
    target.writeUInt32LE(batch.end - batch.start, at + 16)
    at += batchHeadBytes
    at += source.copy(target, at, batch.start, batch.end)
  }
  at = target.writeUInt32LE(groups.length, at)
  for (const { group, epoch, offsets } of groups) {
    at = writeText(target, at, group)
    at = writeText(target, at, epoch.memberId)
    at = target.writeInt32LE(epoch.generation, at)
    at = target.writeUInt32LE(offsets.size, at)
    for (const [input, { next, meta }] of offsets) {
      at = target.writeUInt16LE(topicNumber(input), at)
      at = target.writeUInt16LE(input.partition, at)
      at = target.writeDoubleLE(next, at)
      at = writeText(target, at, meta)
    }
  }
}

/** Throws RangeError where the body ends too early. */
export function readCommit(body: Buffer, reader: CommitReader): void {
  let at = 4
  for (let left = body.readUInt32LE(0); left > 0; left--) {
    const length = body.readUInt32LE(at + 16)
    const count = body.readUInt32LE(at + 12)
    const position = at + batchHeadBytes
    reader.batch(body.readUInt16LE(at), body.readUInt16LE(at + 2), body.readDoubleLE(at + 4), count, position, length)
    at = position + length
  }
  function text(): string | undefined {
    const length = body.readInt32LE(at)
    at += 4
    if (length < 0) return undefined
    at += length
    return body.toString('utf8', at - length, at)
  }
  const groupCount = body.readUInt32LE(at)
  at += 4
  for (let left = groupCount; left > 0; left--) {
    const group = text() ?? ''
    text()
    const offsetCount = body.readUInt32LE(at + 4)
    at += 8
    for (let n = 0; n < offsetCount; n++) {
      const topic = body.readUInt16LE(at)
      const partition = body.readUInt16LE(at + 2)
      const next = body.readDoubleLE(at + 4)
      at += 12
      reader.offset(group, topic, partition, next, text())
    }
  }
}

function writeText(target: Buffer, at: number, text: string | undefined): number {
  if (text === undefined) return target.writeInt32LE(-1, at)
  const length = target.write(text, at + 4)
  target.writeInt32LE(length, at)
  return at + 4 + length
}
