import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { ArchiveError } from './errors.ts'
import { readGzipMember } from './gzip.ts'
import { parseFields, splitLines } from './http-head.ts'

export interface WarcRecord {
  /** Of the record, or of its gzip member, in the file. */
  readonly offset: number
  readonly length: number
  /** False for a record that shares its gzip member with others: it cannot be pointed at. */
  readonly wholeMember: boolean
  /** `1.0`, `1.1`, … */
  readonly version: string
  /** WARC-Type, lower case. */
  readonly type: string
  readonly headers: readonly (readonly [string, string])[]
  readonly block: Buffer
}

export interface WarcReadOptions {
  /** Where to begin: the offset of a record or member. Default 0. */
  readonly from?: number
  /** Bound of one gzip member's content or one record. Default 256 MiB. */
  readonly maxRecordBytes?: number
}

export const defaultMaxRecordBytes = 256 * 1024 * 1024

/**
 * The records of a .warc or .warc.gz file in order (WARC 1.0 and 1.1), one in memory at a time. Throws ArchiveError
 * `malformed` at the first byte that is no record (its message has the offset) and `too-large`.
 */
export function* readWarcFile(path: string, options: WarcReadOptions = {}): Generator<WarcRecord> {
  const maxBytes = options.maxRecordBytes ?? defaultMaxRecordBytes
  const fd = openSync(path, 'r')
  try {
    const size = fstatSync(fd).size
    let offset = options.from ?? 0
    let isGzip: boolean | undefined
    let window = readAt(fd, offset, Math.min(firstWindowBytes, size - offset))
    while (offset < size) {
      isGzip ??= window[0] === 0x1f && window[1] === 0x8b
      const found = isGzip ? nextMember(window, offset, maxBytes) : nextRecord(window, offset)
      if (found !== null) {
        yield* found.records
        offset += found.length
        window = window.subarray(found.length)
        if (window.length > 0 || offset >= size) continue
      }
      const wanted = found === null ? Math.max(2 * window.length, firstWindowBytes) : firstWindowBytes
      if (found === null && offset + window.length >= size) {
        throw new ArchiveError('malformed', `${path}: the record at ${offset} is cut at the end of the file`)
      }
      if (wanted > 2 * maxBytes) throw new ArchiveError('too-large', `${path}: the record at ${offset} is too large`)
      window = readAt(fd, offset, Math.min(wanted, size - offset))
    }
  } finally {
    closeSync(fd)
  }
}

/** Value of a WARC or HTTP header, by name without regard to case. */
export function headerOf(headers: readonly (readonly [string, string])[], name: string): string | undefined {
  const wanted = name.toLowerCase()
  return headers.find(([n]) => n.toLowerCase() === wanted)?.[1]
}

/** All records in `data`, which must hold nothing else. Throws ArchiveError `malformed`. */
export function parseRecords(data: Buffer, place: { offset: number; length: number }): WarcRecord[] {
  const parsed: (Omit<WarcRecord, 'wholeMember'> & { end: number })[] = []
  for (let at = 0; at < data.length; ) {
    const record = parseRecord(data, at, place.offset)
    if (record === null) throw new ArchiveError('malformed', `a record in the gzip member at ${place.offset} is cut`)
    parsed.push({ ...record, ...place })
    at = record.end
  }
  return parsed.map(({ end: _, ...record }) => ({
    ...record,
    wholeMember: parsed.length === 1,
  }))
}

interface Found {
  readonly records: readonly WarcRecord[]
  readonly length: number
}

const firstWindowBytes = 256 * 1024
const maxHeadBytes = 64 * 1024

function nextMember(window: Buffer, offset: number, maxBytes: number): Found | null {
  const member = readGzipMember(window, 0, maxBytes)
  if (member === null) return null
  return {
    records: parseRecords(member.data, { offset, length: member.end }),
    length: member.end,
  }
}

function nextRecord(window: Buffer, offset: number): Found | null {
  const record = parseRecord(window, 0, offset)
  if (record === null) return null
  const { end, ...rest } = record
  return {
    records: [{ ...rest, offset, length: end, wholeMember: true }],
    length: end,
  }
}

/** Null when `data` ends before the record does. */
function parseRecord(
  data: Buffer,
  start: number,
  offset: number,
):
  | (Pick<WarcRecord, 'version' | 'type' | 'headers' | 'block'> & {
      end: number
    })
  | null {
  const malformed = (what: string): ArchiveError => new ArchiveError('malformed', `the record at ${offset}: ${what}`)
  const headEnd = data.indexOf('\r\n\r\n', start)
  if (headEnd < 0 || headEnd - start > maxHeadBytes) {
    if (
      data.length - start < maxHeadBytes &&
      data.subarray(start, start + 5).equals(magic.subarray(0, data.length - start))
    ) {
      return null
    }
    throw malformed('no WARC header')
  }
  const lines = splitLines(data.toString('utf8', start, headEnd))
  const version = /^WARC\/(\d+\.\d+)$/.exec(lines[0] ?? '')?.[1]
  if (version === undefined) throw malformed(`no WARC version: ${JSON.stringify((lines[0] ?? '').slice(0, 40))}`)
  const headers = parseFields(lines.slice(1))
  const lengthText = headerOf(headers, 'content-length')
  if (lengthText === undefined || !/^\d{1,15}$/.test(lengthText)) throw malformed('no Content-Length')
  const blockStart = headEnd + 4
  const blockEnd = blockStart + Number(lengthText)
  const end = blockEnd + 4
  if (end > data.length) return null
  if (data.readUInt32BE(blockEnd) !== 0x0d0a0d0a) throw malformed('its Content-Length is not that of its block')
  const type = (headerOf(headers, 'warc-type') ?? '').toLowerCase()
  return {
    version,
    type,
    headers,
    block: data.subarray(blockStart, blockEnd),
    end,
  }
}

const magic = Buffer.from('WARC/')

function readAt(fd: number, offset: number, length: number): Buffer {
  const buffer = Buffer.allocUnsafe(Math.max(0, length))
  let filled = 0
  while (filled < buffer.length) {
    const n = readSync(fd, buffer, filled, buffer.length - filled, offset + filled)
    if (n === 0) break
    filled += n
  }
  return buffer.subarray(0, filled)
}
