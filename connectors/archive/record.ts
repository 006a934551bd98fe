import { createHash } from 'node:crypto'
import { hash128 } from '../../schemas/hash.ts'
import { coherentHead } from './http-head.ts'
import type { ArchiveExchange } from './types.ts'

/** Where a record will be: its id is made of it, so the same crawl writes the same ids. */
export interface RecordPlace {
  readonly file: string
  readonly offset: number
  readonly warcinfoId: string
}

/** The record that opens a file (WARC 1.1, 6.1 "warcinfo"). `fields` are lines of application/warc-fields. */
export function warcinfoRecord(
  file: string,
  dateMs: number,
  fields: readonly (readonly [string, string])[],
): { id: string; record: Buffer } {
  const id = recordId(file, 0, 'warcinfo')
  const block = Buffer.from(fields.map(([name, value]) => `${name}: ${oneLine(value)}\r\n`).join(''))
  const head = [
    `WARC-Type: warcinfo`,
    `WARC-Record-ID: ${id}`,
    `WARC-Date: ${warcDate(dateMs)}`,
    `WARC-Filename: ${file}`,
    `WARC-Block-Digest: ${sha1Label(block)}`,
    `Content-Type: application/warc-fields`,
  ]
  return { id, record: joinRecord(head, block) }
}

/** The response, or revisit, of an exchange (WARC 1.1, 6.3 and 6.7). */
export function responseRecord(exchange: ArchiveExchange, place: RecordPlace): Buffer {
  const { revisit } = exchange
  const isNotModified = revisit?.profile === 'server-not-modified'
  const httpHead = coherentHead(exchange.responseHead, isNotModified ? null : exchange.rawBody.length)
  const body = revisit === null ? exchange.rawBody : emptyBody
  const head = [
    `WARC-Type: ${revisit === null ? 'response' : 'revisit'}`,
    `WARC-Record-ID: ${recordId(place.file, place.offset, 'response')}`,
    ...commonFields(exchange, place),
  ]
  if (revisit !== null) {
    head.push(
      `WARC-Profile: http://netpreserve.org/warc/1.1/revisit/${revisit.profile}`,
      `WARC-Refers-To-Target-URI: ${headerUri(revisit.refersToUrl)}`,
      `WARC-Refers-To-Date: ${warcDate(revisit.refersToDateMs)}`,
    )
  } else if (exchange.truncated !== null) {
    head.push(`WARC-Truncated: ${exchange.truncated}`)
  }
  // A 304 has no payload whose digest could be told.
  if (!isNotModified) head.push(`WARC-Payload-Digest: sha1:${base32(exchange.payloadDigest)}`)
  head.push(`WARC-Block-Digest: ${sha1Label(httpHead, body)}`, 'Content-Type: application/http;msgtype=response')
  return joinRecord(head, httpHead, body)
}

/** The request of an exchange (WARC 1.1, 6.4). `place` is the response's. */
export function requestRecord(exchange: ArchiveExchange, place: RecordPlace): Buffer {
  const head = [
    `WARC-Type: request`,
    `WARC-Record-ID: ${recordId(place.file, place.offset, 'request')}`,
    ...commonFields(exchange, place),
    `WARC-Concurrent-To: ${recordId(place.file, place.offset, 'response')}`,
    `WARC-Block-Digest: ${sha1Label(exchange.requestHead)}`,
    `Content-Type: application/http;msgtype=request`,
  ]
  return joinRecord(head, exchange.requestHead)
}

/** A URI as a header may hold it: what is not visible ASCII is percent-encoded as UTF-8. */
export function headerUri(url: string): string {
  return url.toWellFormed().replace(/[^\x21-\x7e]/gu, (char) => encodeURIComponent(char))
}

const emptyBody = Buffer.alloc(0)
const recordEnd = Buffer.from('\r\n\r\n')
const base32Alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

function commonFields(exchange: ArchiveExchange, place: RecordPlace): string[] {
  const fields = [
    `WARC-Warcinfo-ID: ${place.warcinfoId}`,
    `WARC-Target-URI: ${headerUri(exchange.url)}`,
    `WARC-Date: ${warcDate(exchange.startedAtMs)}`,
  ]
  if (/^[\da-fA-F.:]+$/.test(exchange.address)) fields.push(`WARC-IP-Address: ${exchange.address}`)
  return fields
}

function joinRecord(head: readonly string[], ...block: readonly Buffer[]): Buffer {
  const length = block.reduce((sum, part) => sum + part.length, 0)
  const text = `WARC/1.1\r\n${head.join('\r\n')}\r\nContent-Length: ${length}\r\n\r\n`
  return Buffer.concat([Buffer.from(text, 'utf8'), ...block, recordEnd])
}

/** WARC 1.1 allows fractions of a second. */
function warcDate(ms: number): string {
  return new Date(ms).toISOString()
}

/** An UUID of version 8 (RFC 9562, 5.8): a hash of where the record is. */
function recordId(file: string, offset: number, type: string): string {
  const hash = hash128(`${file}:${offset}:${type}`)
  hash[6] = (hash[6]! & 0x0f) | 0x80
  hash[8] = (hash[8]! & 0x3f) | 0x80
  const hex = hash.toString('hex')
  const parts = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)]
  return `<urn:uuid:${parts.join('-')}>`
}

function sha1Label(...parts: readonly Buffer[]): string {
  const hash = createHash('sha1')
  for (const part of parts) hash.update(part)
  return `sha1:${base32(hash.digest())}`
}

/** RFC 4648, 6; without padding, since a SHA-1 fills its last group. */
function base32(bytes: Uint8Array): string {
  let out = ''
  let bits = 0
  let held = 0
  for (const byte of bytes) {
    held = ((held << 8) | byte) & 0xfff
    bits += 8
    while (bits >= 5) {
      bits -= 5
      out += base32Alphabet[(held >>> bits) & 31]
    }
  }
  return bits === 0 ? out : out + base32Alphabet[(held << (5 - bits)) & 31]
}

function oneLine(value: string): string {
  return value.replace(/[\r\n]+/g, ' ')
}
