import { crc32, deflateRawSync, inflateRawSync } from 'node:zlib'
import { ArchiveError } from './errors.ts'

/**
 * One gzip member (RFC 1952) in pieces, to be written one after another. Level 1: what is archived is written once and
 * read seldom. `store` leaves the data as they are, for what is compressed already or too small to gain.
 */
export function gzipMember(data: Buffer, store: boolean): Buffer[] {
  const trailer = Buffer.allocUnsafe(8)
  trailer.writeUInt32LE(crc32(data), 0)
  trailer.writeUInt32LE(data.length >>> 0, 4)
  return store
    ? [memberHeader, ...storedBlocks(data), trailer]
    : [
        memberHeader,
        deflateRawSync(data, {
          level: 1,
          chunkSize: outputChunkBytes(data.length),
        }),
        trailer,
      ]
}

/**
 * The member that begins at `at`: its content and where it ends; null when `buffer` ends before it does.
 * Throws ArchiveError `malformed`, or `too-large` when the content is over `maxBytes`.
 */
export function readGzipMember(buffer: Buffer, at: number, maxBytes: number): { data: Buffer; end: number } | null {
  const start = headerEnd(buffer, at)
  if (start === null) return null
  let data: Buffer
  let consumed: number
  try {
    const result = inflateRawSync(buffer.subarray(start), {
      info: true,
      maxOutputLength: maxBytes,
      chunkSize: 64 * 1024,
    }) as unknown as { buffer: Buffer; engine: { bytesWritten: number } }
    data = result.buffer
    consumed = result.engine.bytesWritten
  } catch (error) {
    const { code, message } = error as { code?: string; message: string }
    if (code === 'Z_BUF_ERROR') return null
    if (code === 'ERR_BUFFER_TOO_LARGE') {
      throw new ArchiveError('too-large', `the gzip member at ${at} is over ${maxBytes} bytes`, { cause: error })
    }
    throw new ArchiveError('malformed', `the gzip member at ${at} is broken: ${message}`, { cause: error })
  }
  const end = start + consumed + 8
  if (end > buffer.length) return null
  if (buffer.readUInt32LE(end - 8) !== crc32(data) || buffer.readUInt32LE(end - 4) !== data.length >>> 0) {
    throw new ArchiveError('malformed', `the gzip member at ${at} fails its checksum`)
  }
  return { data, end }
}

// No name, no time: the same record gives the same bytes. XFL 4 = fastest, OS 255 = unknown.
const memberHeader = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255])
const maxStoredBytes = 65_535
const flagHeaderCrc = 2
const flagExtra = 4
const flagName = 8
const flagComment = 16

function storedBlocks(data: Buffer): Buffer[] {
  const pieces: Buffer[] = []
  let at = 0
  do {
    const length = Math.min(maxStoredBytes, data.length - at)
    const head = Buffer.allocUnsafe(5)
    head[0] = at + length === data.length ? 1 : 0
    head.writeUInt16LE(length, 1)
    head.writeUInt16LE(length ^ 0xffff, 3)
    pieces.push(head, data.subarray(at, at + length))
    at += length
  } while (at < data.length)
  return pieces
}

/** Room for the result in one piece as a rule, so that zlib neither joins pieces nor zeroes much that it leaves. */
function outputChunkBytes(inputBytes: number): number {
  return Math.max(4 * 1024, Math.min(1024 * 1024, (inputBytes >>> 1) + 1024))
}

function headerEnd(buffer: Buffer, at: number): number | null {
  if (buffer.length < at + 10) return null
  if (buffer[at] !== 0x1f || buffer[at + 1] !== 0x8b || buffer[at + 2] !== 8) {
    throw new ArchiveError('malformed', `no gzip member begins at ${at}`)
  }
  const flags = buffer[at + 3]!
  let end = at + 10
  if (flags & flagExtra) {
    if (buffer.length < end + 2) return null
    end += 2 + buffer.readUInt16LE(end)
  }
  for (const flag of [flagName, flagComment]) {
    if ((flags & flag) === 0) continue
    const zero = buffer.indexOf(0, end)
    if (zero < 0) return null
    end = zero + 1
  }
  if (flags & flagHeaderCrc) end += 2
  return end > buffer.length ? null : end
}
