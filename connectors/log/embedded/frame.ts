/**
 * A journal is one sequence of bytes cut into files; a position counts from its beginning. It consists of frames, a
 * head and a body each. Head, little-endian, the same for ever whatever the version:
 * u32 magic, u8 version, u8 kind, u16 zero, u32 body length, u64 XXH64 of the body, f64 position of the frame,
 * f64 synced position, u64 XXH64 of the head before it.
 *
 * A frame that names its own position cannot be taken for one when it is found inside a record. The synced position
 * is up to where the journal was known to be durable when the frame was written: after a power cut it tells a frame
 * that was acknowledged and is broken (somebody must look) from one that never was (it is dropped).
 */
import { xxh64 } from '../../../schemas/hash.ts'

export const frameVersion = 1
export const frameHeadBytes = 44
export const frameMagic = Buffer.from('wjf\u0001', 'latin1')
const magic = frameMagic.readUInt32LE(0)
const hashedHeadBytes = 36

export const frameKinds = { commit: 1, topic: 2, generation: 3 } as const
export type FrameKind = (typeof frameKinds)[keyof typeof frameKinds]

export type FrameHead = {
  readonly version: number
  readonly kind: number
  readonly bodyLength: number
  readonly bodyHash: bigint
  readonly syncedTo: number
}

/** Writes the head of the frame whose body is there already, behind it. */
export function writeFrameHead(
  buffer: Buffer,
  at: number,
  kind: FrameKind,
  bodyLength: number,
  position: number,
  syncedTo: number,
): void {
  const body = at + frameHeadBytes
  buffer.writeUInt32LE(magic, at)
  buffer[at + 4] = frameVersion
  buffer[at + 5] = kind
  buffer.writeUInt16LE(0, at + 6)
  buffer.writeUInt32LE(bodyLength, at + 8)
  buffer.writeBigInt64LE(hashOf(buffer, body, body + bodyLength), at + 12)
  buffer.writeDoubleLE(position, at + 20)
  buffer.writeDoubleLE(syncedTo, at + 28)
  sealFrameHead(buffer, at)
}

/** Writes the hash at the head's end. */
export function sealFrameHead(buffer: Buffer, at: number): void {
  buffer.writeBigInt64LE(hashOf(buffer, at, at + hashedHeadBytes), at + hashedHeadBytes)
}

/** Undefined if there is no whole and valid head of a frame at that position. */
export function readFrameHead(buffer: Buffer, at: number, position: number): FrameHead | undefined {
  if (at + frameHeadBytes > buffer.length || buffer.readUInt32LE(at) !== magic) return undefined
  if (buffer.readBigInt64LE(at + hashedHeadBytes) !== hashOf(buffer, at, at + hashedHeadBytes)) return undefined
  if (buffer.readDoubleLE(at + 20) !== position) return undefined
  return {
    version: buffer[at + 4]!,
    kind: buffer[at + 5]!,
    bodyLength: buffer.readUInt32LE(at + 8),
    bodyHash: buffer.readBigInt64LE(at + 12),
    syncedTo: buffer.readDoubleLE(at + 28),
  }
}

export function isBodyIntact(head: FrameHead, body: Buffer): boolean {
  return body.length === head.bodyLength && hashOf(body, 0, body.length) === head.bodyHash
}

/** XXH64 as a signed integer; for frames of a few kilobytes it takes half the time of zlib's CRC-32. */
function hashOf(buffer: Buffer, start: number, end: number): bigint {
  return BigInt.asIntN(64, xxh64(buffer.subarray(start, end)))
}
