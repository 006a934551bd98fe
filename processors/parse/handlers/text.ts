import { sniffCharset, toUtf8 } from '../charset.ts'
import { createDirectivesCollector } from '../directives.ts'
import { headerValues } from '../headers.ts'
import { languageTag, opening } from '../strings.ts'
import { type ContentHandler, maxTextBytes } from './types.ts'

const snippetChars = 200
/** As many bytes as the MIME sniffing standard looks at. */
const sniffedBytes = 1_445

/** Plain text: the text is all of it; no title and no links. A body that is plainly not text is refused. */
export function createTextHandler(): ContentHandler {
  return {
    types: ['text/plain'],
    parse({ url, contentType, headers, body, agentToken }) {
      const charset = sniffCharset(body, contentType, false)
      if (charset.bomLength === 0 && isBinary(body.subarray(0, sniffedBytes))) return undefined
      const directives = createDirectivesCollector(agentToken)
      for (const value of headerValues(headers, 'x-robots-tag')) directives.header(value)
      // Four bytes make a character in no encoding more than that, so this is enough to fill the bound.
      const utf8 = toUtf8(body.subarray(0, 4 * maxTextBytes), charset)
      const text = collapse(cutCharacters(utf8, maxTextBytes).toString())
      return {
        charset: charset.name,
        baseUrl: url,
        title: null,
        snippet: opening(text, snippetChars) || null,
        text,
        language: languageTag(headerValues(headers, 'content-language')[0]),
        links: new Uint8Array(0),
        linkCount: 0,
        excessCount: 0,
        directives: directives.found,
        canonicalUrl: null,
      }
    },
  }
}

/** Spaces within a line, and empty lines, say nothing. */
function collapse(text: string): string {
  return text
    .replaceAll('\0', '')
    .split(/[\r\n\u2028\u2029]+/)
    .map((line) => line.replace(/\s+/g, ' ').trim())
    .filter(Boolean)
    .join('\n')
}

/** At most `maxBytes`, not ending inside a character. */
function cutCharacters(utf8: Buffer, maxBytes: number): Buffer {
  if (utf8.length <= maxBytes) return utf8
  let end = maxBytes
  while (end > maxBytes - 4 && (utf8[end]! & 0xc0) === 0x80) end--
  return utf8.subarray(0, end)
}

/** Control characters that no text has (MIME sniffing standard, 7.2). */
function isBinary(head: Uint8Array): boolean {
  return head.some((byte) => byte <= 8 || byte === 11 || (byte >= 14 && byte <= 26) || (byte >= 28 && byte <= 31))
}
