import { hash128 } from '../../schemas/hash.ts'
import { hostOf, siteOf } from '../site.ts'

/** Bytes as hexadecimal text; empty = none. The tables turn it back into bytes. */
export function hexOf(bytes: Uint8Array | null): string {
  return bytes === null ? '' : asBuffer(bytes).toString('hex')
}

/** 8 bytes, big-endian, as the decimal text of a UInt64; none = 0. */
export function uint64Of(bytes: Uint8Array | null): string {
  return bytes === null ? '0' : asBuffer(bytes).readBigUInt64BE().toString()
}

/** SHA-1 as WARC and Common Crawl write it: base32 without padding (20 bytes have none). */
export function base32Of(bytes: Uint8Array | null): string {
  if (bytes === null) return ''
  let text = ''
  let bits = 0
  let held = 0
  for (const byte of bytes) {
    held = (held << 8) | byte
    bits += 8
    for (; bits >= 5; bits -= 5) text += alphabet[(held >>> (bits - 5)) & 31]
    held &= (1 << bits) - 1
  }
  return bits === 0 ? text : text + alphabet[(held << (5 - bits)) & 31]
}

export function timeOf(ms: number): string {
  return new Date(ms).toISOString()
}

export function timeOrNull(ms: number | null): string | null {
  return ms === null ? null : timeOf(ms)
}

/** What names a page in every table. `url` is the canonical key. */
export function pageColumns(url: string): { url_hash_hex: string; url: string; host: string; site: string } {
  const host = hostOf(url)
  return { url_hash_hex: hash128(url).toString('hex'), url, host, site: siteOf(host) }
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
