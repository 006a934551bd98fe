import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../clock/types.ts'
import { ArchiveError } from './errors.ts'
import { gzipMember, readGzipMember } from './gzip.ts'
import { parseHttpResponse } from './http-head.ts'
import { requestRecord, responseRecord, warcinfoRecord } from './record.ts'
import { recoverSegments, type TailCut } from './recover.ts'
import { createSegment, type Segment } from './segment.ts'
import type { Archive, ArchivedRecord, ArchiveExchange, ArchiveRef } from './types.ts'
import { defaultMaxRecordBytes, headerOf, parseRecords } from './warc-reader.ts'

export interface FileArchiveOptions {
  readonly dir: string
  readonly crawl: string
  readonly clock: Clock
  /** One writer each; letters and digits. Default `0`. */
  readonly lane?: string
  /** A segment that has reached this is ended before the next exchange. Default 1 GB. */
  readonly maxSegmentBytes?: number
  /** Age at which a segment is ended before the next exchange. Default 10 minutes. */
  readonly maxSegmentMs?: number
  /** For warcinfo: name and version of the writer. */
  readonly software: string
  /** For warcinfo: who crawls, with a contact. */
  readonly operator?: string
  onEvent?(event: ArchiveEvent): void
}

export type ArchiveEvent =
  | TailCut
  | { readonly kind: 'segment-opened'; readonly file: string }
  | {
      readonly kind: 'segment-closed'
      readonly file: string
      readonly bytes: number
    }

/**
 * WARC 1.1 files `<crawl>-<time>-<lane>-<n>.warc.gz`: warcinfo first, then a response (or revisit) and its request an
 * exchange, one gzip member a record (ISO 28500:2017, annex D). A file that exists is never written again: a restart
 * begins a new one, after it has cut what a killed process left torn at the end of this lane's files.
 * `append` and `sync` throw ArchiveError `disk-full`, `write-failed`, `sync-failed`, `closed`; `read` throws
 * `not-found`, `bad-pointer`, `too-large`.
 */
export function createFileArchive(options: FileArchiveOptions): Archive {
  const { dir, crawl, clock, lane = '0' } = options
  const maxSegmentBytes = options.maxSegmentBytes ?? 1_000_000_000
  const maxSegmentMs = options.maxSegmentMs ?? 600_000
  if (!/^[\w.-]+$/.test(crawl) || !/^[a-zA-Z0-9]+$/.test(lane)) {
    throw new TypeError(`crawl ${JSON.stringify(crawl)} or lane ${JSON.stringify(lane)} cannot be in a file name`)
  }
  const emit = (event: ArchiveEvent): void => options.onEvent?.(event)
  recoverSegments(dir, isFileOf(crawl, lane), emit)

  let segment: Segment | null = null
  let warcinfoId = ''
  let openedAtMs = 0
  let sequence = 0
  let closed = false
  // Ended, but not yet synced and closed: the next sync does that.
  let ended: Segment[] = []
  let appended = 0
  let synced = 0
  let running: Promise<void> | null = null
  let following: Promise<void> | null = null

  const openSegment = (): Segment => {
    const nowMs = clock.nowMs()
    for (;;) {
      const number = String(sequence++).padStart(5, '0')
      const file = `${crawl}-${stamp(nowMs)}-${lane}-${number}.warc.gz`
      const created = createSegment(dir, file)
      if (created === null) continue
      const info = warcinfoRecord(file, nowMs, [
        ['software', options.software],
        ['format', 'WARC File Format 1.1'],
        ['conformsTo', 'http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/'],
        ['isPartOf', crawl],
        ...(options.operator === undefined ? [] : [['operator', options.operator] as const]),
        ['robots', 'classic'],
      ])
      try {
        created.write(gzipMember(info.record, true))
      } catch (error) {
        created.discard()
        throw error
      }
      segment = created
      warcinfoId = info.id
      openedAtMs = clock.monotonicMs()
      emit({ kind: 'segment-opened', file })
      return created
    }
  }

  const currentSegment = (): Segment => {
    if (segment !== null && (segment.length >= maxSegmentBytes || clock.monotonicMs() - openedAtMs >= maxSegmentMs)) {
      ended.push(segment)
      segment = null
    }
    return segment ?? openSegment()
  }

  const syncOnce = async (): Promise<void> => {
    const upTo = appended
    const toFinish = ended
    ended = []
    const open = segment === null ? [] : [segment]
    try {
      await Promise.all([...toFinish, ...open].map(syncSegment))
      for (const done of toFinish) {
        done.finish()
        emit({ kind: 'segment-closed', file: done.file, bytes: done.length })
      }
      synced = upTo
    } catch (error) {
      throw new ArchiveError('sync-failed', `syncing the archive: ${(error as Error).message}`, { cause: error })
    }
  }

  const startSync = (): Promise<void> => {
    running = syncOnce().finally(() => {
      running = null
    })
    return running
  }

  const sync = (): void | Promise<void> => {
    if (running === null) return synced === appended && ended.length === 0 ? undefined : startSync()
    // What runs may have begun before the caller's last append, so those who come now share the next one.
    following ??= running
      .catch(() => {})
      .then(() => {
        following = null
        return startSync()
      })
    return following
  }

  return {
    append(exchange) {
      if (closed) throw new ArchiveError('closed', 'the archive is closed')
      const target = currentSegment()
      const place = { file: target.file, offset: target.length, warcinfoId }
      const response = responseRecord(exchange, place)
      const member = gzipMember(response, response.length <= smallBytes || isCompressed(exchange))
      const request = requestRecord(exchange, place)
      target.write([...member, ...gzipMember(request, request.length <= smallBytes)])
      appended++
      return {
        file: place.file,
        offset: place.offset,
        length: member.reduce((sum, piece) => sum + piece.length, 0),
      }
    },
    sync,
    read: (ref) => readExchange(dir, ref),
    async close() {
      if (closed) return
      closed = true
      if (segment !== null) ended.push(segment)
      segment = null
      await sync()
    },
  }
}

/** Reads the response or revisit that a pointer names, from a folder of WARC files. Throws as `Archive.read` does. */
export async function readExchange(dir: string, ref: ArchiveRef): Promise<ArchivedRecord> {
  const reader = createArchiveReader(dir)
  try {
    return await reader.read(ref)
  } finally {
    await reader.close()
  }
}

/** Reads many records, one after the other; it is fast where one file's come together, in the order of their offsets. */
export interface ArchiveReader {
  /** Throws as `Archive.read` does. */
  read(ref: ArchiveRef): Promise<ArchivedRecord>
  close(): Promise<void>
}

/** Keeps the file open that it read last. */
export function createArchiveReader(dir: string): ArchiveReader {
  let last: { readonly file: string; readonly handle: FileHandle } | null = null

  const close = async (): Promise<void> => {
    const handle = last?.handle
    last = null
    await handle?.close()
  }

  return {
    close,
    async read(ref) {
      const name = nameOf(ref)
      if (last?.file !== ref.file) {
        await close()
        last = { file: ref.file, handle: await openFile(join(dir, ref.file), name) }
      }
      return decodeExchange(await readBytes(last.handle, ref, name), ref, name)
    },
  }
}

/** Throws for what no pointer can be. */
function nameOf(ref: ArchiveRef): string {
  const name = `${ref.file} ${ref.offset}+${ref.length}`
  if (!isFileName(ref.file)) throw new ArchiveError('bad-pointer', `reading ${name}: not a file name`)
  if (!Number.isSafeInteger(ref.offset) || !Number.isSafeInteger(ref.length) || ref.offset < 0 || ref.length <= 0) {
    throw new ArchiveError('bad-pointer', `reading ${name}: impossible offset or length`)
  }
  if (ref.length > defaultMaxRecordBytes) throw new ArchiveError('too-large', `reading ${name}: too large`)
  return name
}

function decodeExchange(bytes: Buffer, ref: ArchiveRef, name: string): ArchivedRecord {
  try {
    const member = readGzipMember(bytes, 0, defaultMaxRecordBytes)
    if (member === null || member.end !== bytes.length) {
      throw new ArchiveError('bad-pointer', `reading ${name}: not one whole gzip member`)
    }
    const [record, ...more] = parseRecords(member.data, ref)
    if (record === undefined || more.length > 0 || (record.type !== 'response' && record.type !== 'revisit')) {
      throw new ArchiveError('bad-pointer', `reading ${name}: not a response or revisit`)
    }
    const http = parseHttpResponse(record.block)
    const dateMs = Date.parse(headerOf(record.headers, 'warc-date') ?? '')
    if (Number.isNaN(dateMs)) throw new ArchiveError('malformed', 'no WARC-Date')
    return {
      url: headerOf(record.headers, 'warc-target-uri') ?? '',
      dateMs,
      type: record.type,
      status: http.status,
      headers: http.headers,
      rawBody: http.body,
    }
  } catch (error) {
    if (error instanceof ArchiveError && error.code === 'malformed') {
      throw new ArchiveError('bad-pointer', `reading ${name}: ${error.message}`, { cause: error })
    }
    throw error
  }
}

/** Whether a file name is of this crawl and lane (undefined = any lane), as this archive makes them. */
export function isFileOf(crawl: string, lane?: string): (file: string) => boolean {
  return (file) => {
    if (!file.startsWith(`${crawl}-`)) return false
    const match = /^\d{17}-([a-zA-Z0-9]+)-\d{5,}\.warc\.gz$/.exec(file.slice(crawl.length + 1))
    return match !== null && (lane === undefined || match[1] === lane)
  }
}

/** Below this, deflating costs more time than it saves bytes. */
const smallBytes = 1_024

async function openFile(path: string, name: string): Promise<FileHandle> {
  try {
    return await open(path, 'r')
  } catch (error) {
    throw new ArchiveError('not-found', `reading ${name}: ${(error as Error).message}`, { cause: error })
  }
}

async function readBytes(file: FileHandle, ref: ArchiveRef, name: string): Promise<Buffer> {
  // Before the memory is taken: a pointer may lie about its length.
  if (ref.offset + ref.length > (await file.stat()).size) {
    throw new ArchiveError('bad-pointer', `reading ${name}: behind the end of the file`)
  }
  const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(ref.length), 0, ref.length, ref.offset)
  if (bytesRead < ref.length) throw new ArchiveError('bad-pointer', `reading ${name}: behind the end of the file`)
  return buffer
}

/** A body that its server compressed gains nothing by being deflated again. */
function isCompressed(exchange: ArchiveExchange): boolean {
  if (exchange.revisit !== null) return false
  const head = exchange.responseHead.toString('latin1')
  const coding = /^content-encoding[ \t]*:[ \t]*([^\r\n]*)/im.exec(head)?.[1]?.trim().toLowerCase()
  return (
    (coding !== undefined && coding !== '' && coding !== 'identity') ||
    /^content-type[ \t]*:[ \t]*image\/(?!svg)/im.test(head)
  )
}

function syncSegment(segment: Segment): Promise<void> {
  return new Promise((resolve, reject) => segment.sync((error) => (error === null ? resolve() : reject(error))))
}

function isFileName(file: string): boolean {
  return /^[\w.-]+\.warc\.gz$/.test(file) && !file.startsWith('.')
}

/** YYYYMMDDhhmmssSSS in UTC. */
function stamp(ms: number): string {
  return new Date(ms).toISOString().replace(/\D/g, '')
}
