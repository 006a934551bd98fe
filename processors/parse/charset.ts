import { isAscii } from 'node:buffer'
import { charsetParameter, encodingOf } from './encodings.ts'
import { guessEncoding } from './guess.ts'
import { prescan } from './prescan.ts'

export type CharsetSource = 'bom' | 'header' | 'meta' | 'guess'

export interface Charset {
  /** Lower-case name of the encoding, as TextDecoder reports it. */
  readonly name: string
  readonly from: CharsetSource
  /** Bytes of the byte order mark; 0 = none. */
  readonly bomLength: number
}

/**
 * Finds a page's encoding: byte order mark, then the Content-Type header, then a meta element or XML declaration in
 * the first 1,024 bytes, then a guess (HTML standard, 13.2.3.2). A label that names no encoding is passed over.
 */
export function sniffCharset(body: Buffer, contentType: string | null, markup = true): Charset {
  const mark = byteOrderMark(body)
  if (mark !== undefined) return mark
  const header = encodingOf(charsetParameter(contentType ?? ''))
  if (header !== undefined) return { name: header, from: 'header', bomLength: 0 }
  const meta = markup ? prescan(body.subarray(0, prescanBytes)) : undefined
  if (meta !== undefined) return { name: meta, from: 'meta', bomLength: 0 }
  return { name: guessEncoding(body), from: 'guess', bomLength: 0 }
}

/**
 * The body as UTF-8 without byte order mark. The bytes are the body's own where they can be; malformed UTF-8 is kept,
 * since every decoder replaces it the same way later.
 */
export function toUtf8(body: Buffer, charset: Charset): Buffer {
  const bytes = charset.bomLength === 0 ? body : body.subarray(charset.bomLength)
  if (charset.name === 'utf-8') return bytes
  if (!escapesAscii.has(charset.name) && isAscii(bytes)) return bytes
  return Buffer.from(new TextDecoder(charset.name, { ignoreBOM: true }).decode(bytes), 'utf8')
}

/** As many bytes as the standard asks a prescan to look at. */
const prescanBytes = 1_024

/** Encodings in which bytes below 0x80 need not be ASCII characters. */
const escapesAscii: ReadonlySet<string> = new Set(['iso-2022-jp', 'utf-16le', 'utf-16be'])

function byteOrderMark(body: Buffer): Charset | undefined {
  if (body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf) return { name: 'utf-8', from: 'bom', bomLength: 3 }
  if (body[0] === 0xfe && body[1] === 0xff) return { name: 'utf-16be', from: 'bom', bomLength: 2 }
  if (body[0] === 0xff && body[1] === 0xfe) return { name: 'utf-16le', from: 'bom', bomLength: 2 }
  return undefined
}
