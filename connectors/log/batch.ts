/**
 * The encoding of records in memory and in the journal. A record, little-endian: f64 timestamp in milliseconds,
 * i32 key length (-1 = null), i32 value length (-1 = null), u32 length of the headers, key, value, headers; a header:
 * u16 name length, UTF-8 name, u32 value length, value. Records follow each other without padding.
 */
import type { Batch, Headers, Input, RecordBatch } from './types.ts'

const headBytes = 20
const noHeaders: Headers = []

export interface RecordBatchBuilder extends RecordBatch {
  /** Copies. Throws RangeError on a header name over 65,535 bytes. */
  add(key: Uint8Array | null, value: Uint8Array | null, timestampMs: number, headers?: Headers): void
  /** Forgets the records, keeps the memory. */
  clear(): void
}

/** Encodes records for one partition into one buffer that grows by doubling and is used again after `clear`. */
export function createRecordBatch(initialBytes = 4096): RecordBatchBuilder {
  let buffer = Buffer.allocUnsafeSlow(Math.max(initialBytes, headBytes))
  let used = 0
  let count = 0

  function grow(needed: number): void {
    let size = buffer.length
    while (size < needed) size *= 2
    const larger = Buffer.allocUnsafeSlow(size)
    buffer.copy(larger, 0, 0, used)
    buffer = larger
  }

  return {
    get count() {
      return count
    },
    get byteLength() {
      return used
    },
    bytes: () => buffer.subarray(0, used),
    clear() {
      used = 0
      count = 0
    },
    add(key, value, timestampMs, headers = noHeaders) {
      const keyLength = key === null ? 0 : key.length
      const valueLength = value === null ? 0 : value.length
      const headersLength = headers.length === 0 ? 0 : sizeOfHeaders(headers)
      const end = used + headBytes + keyLength + valueLength + headersLength
      if (end > buffer.length) grow(end)
      buffer.writeDoubleLE(timestampMs, used)
      buffer.writeInt32LE(key === null ? -1 : keyLength, used + 8)
      buffer.writeInt32LE(value === null ? -1 : valueLength, used + 12)
      buffer.writeUInt32LE(headersLength, used + 16)
      const body = used + headBytes
      if (key !== null) buffer.set(key, body)
      if (value !== null) buffer.set(value, body + keyLength)
      if (headersLength > 0) writeHeaders(buffer, body + keyLength + valueLength, headers)
      used = end
      count++
    },
  }
}

/**
 * A batch over encoded records: the first is at byte `start` of `buffer` and has offset `baseOffset`. Nothing is
 * decoded before it is asked for; keys and values are views of `buffer`.
 */
export function readBatch(buffer: Buffer, from: Input, baseOffset: number, count: number, start = 0): Batch {
  return new EncodedBatch(buffer, from, baseOffset, count, start)
}

/** Where the record is that comes `records` after the one at byte `start`. */
export function skipRecords(buffer: Buffer, start: number, records: number): number {
  let at = start
  for (let i = 0; i < records; i++) at = endOfRecord(buffer, at)
  return at
}

/** How many of the `count` records at byte `start` fit into `maxBytes`, and where they end. */
export function fitRecords(buffer: Buffer, start: number, count: number, maxBytes: number): [fit: number, end: number] {
  let at = start
  for (let i = 0; i < count; i++) {
    const next = endOfRecord(buffer, at)
    if (next - start > maxBytes) return [i, at]
    at = next
  }
  return [count, at]
}

/** The first of the records whose key, value and headers together are over `maxBytes`; undefined if there is none. */
export function findOversize(
  bytes: Uint8Array,
  count: number,
  maxBytes: number,
): { readonly key: Uint8Array | null; readonly sizeBytes: number } | undefined {
  const buffer = asBuffer(bytes)
  for (let i = 0, at = 0; i < count; i++) {
    const end = endOfRecord(buffer, at)
    const sizeBytes = end - at - headBytes
    if (sizeBytes > maxBytes) return { key: keyAt(buffer, at), sizeBytes }
    at = end
  }
  return undefined
}

/** The same memory as a Buffer. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

class EncodedBatch implements Batch {
  readonly from: Input
  readonly nextOffset: number
  readonly count: number
  readonly #buffer: Buffer
  readonly #baseOffset: number
  /** Where the records start, as far as anybody has asked. */
  readonly #starts: number[]

  constructor(buffer: Buffer, from: Input, baseOffset: number, count: number, start: number) {
    this.from = from
    this.nextOffset = baseOffset + count
    this.count = count
    this.#buffer = buffer
    this.#baseOffset = baseOffset
    this.#starts = [start]
  }

  offset(i: number): number {
    this.#check(i)
    return this.#baseOffset + i
  }
  timestamp(i: number): number {
    return this.#buffer.readDoubleLE(this.#start(i))
  }
  key(i: number): Uint8Array | null {
    return keyAt(this.#buffer, this.#start(i))
  }
  value(i: number): Uint8Array | null {
    const start = this.#start(i)
    const length = this.#buffer.readInt32LE(start + 12)
    if (length < 0) return null
    const at = start + headBytes + Math.max(0, this.#buffer.readInt32LE(start + 8))
    return this.#buffer.subarray(at, at + length)
  }
  headers(i: number): Headers {
    const start = this.#start(i)
    const length = this.#buffer.readUInt32LE(start + 16)
    return length === 0 ? noHeaders : readHeaders(this.#buffer, endOfRecord(this.#buffer, start) - length, length)
  }

  #check(i: number): void {
    if (!(i >= 0 && i < this.count)) throw new RangeError(`reading record ${i} of a batch of ${this.count}`)
  }
  #start(i: number): number {
    this.#check(i)
    const starts = this.#starts
    while (starts.length <= i) starts.push(endOfRecord(this.#buffer, starts[starts.length - 1]!))
    return starts[i]!
  }
}

function endOfRecord(buffer: Buffer, at: number): number {
  const keyLength = buffer.readInt32LE(at + 8)
  const valueLength = buffer.readInt32LE(at + 12)
  return at + headBytes + Math.max(0, keyLength) + Math.max(0, valueLength) + buffer.readUInt32LE(at + 16)
}

function keyAt(buffer: Buffer, at: number): Buffer | null {
  const length = buffer.readInt32LE(at + 8)
  return length < 0 ? null : buffer.subarray(at + headBytes, at + headBytes + length)
}

function sizeOfHeaders(headers: Headers): number {
  let size = 0
  for (const [name, value] of headers) {
    const nameLength = Buffer.byteLength(name)
    if (nameLength > 0xffff) throw new RangeError(`encoding a record header: its name has ${nameLength} bytes`)
    size += 6 + nameLength + value.length
  }
  return size
}

function writeHeaders(buffer: Buffer, start: number, headers: Headers): void {
  let at = start
  for (const [name, value] of headers) {
    const nameLength = buffer.write(name, at + 2)
    buffer.writeUInt16LE(nameLength, at)
    at += 2 + nameLength
    buffer.writeUInt32LE(value.length, at)
    buffer.set(value, at + 4)
    at += 4 + value.length
  }
}

function readHeaders(buffer: Buffer, start: number, length: number): Headers {
  const headers: (readonly [string, Uint8Array])[] = []
  for (let at = start; at < start + length; ) {
    const nameEnd = at + 2 + buffer.readUInt16LE(at)
    const valueEnd = nameEnd + 4 + buffer.readUInt32LE(nameEnd)
    headers.push([buffer.toString('utf8', at + 2, nameEnd), buffer.subarray(nameEnd + 4, valueEnd)])
    at = valueEnd
  }
  return headers
}
