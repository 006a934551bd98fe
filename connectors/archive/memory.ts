import { ArchiveError } from './errors.ts'
import { coherentHead, parseHttpResponse } from './http-head.ts'
import { headerUri } from './record.ts'
import type { Archive, ArchivedRecord, ArchiveExchange } from './types.ts'

/**
 * An archive in memory, for tests and the simulation. It keeps the exchanges it is given, their buffers too, and makes
 * records of them when they are read. Throws what the file archive throws.
 */
export function createMemoryArchive({ crawl = 'test' }: { readonly crawl?: string } = {}): Archive {
  const file = `${crawl}-memory.warc.gz`
  const exchanges = new Map<number, { exchange: ArchiveExchange; length: number }>()
  let end = 0
  let closed = false
  return {
    append(exchange) {
      if (closed) throw new ArchiveError('closed', 'the archive is closed')
      const length = exchange.responseHead.length + (exchange.revisit === null ? exchange.rawBody.length : 0)
      const ref = { file, offset: end, length }
      exchanges.set(end, { exchange, length })
      end += length + exchange.requestHead.length
      return ref
    },
    sync() {},
    async read(ref) {
      if (ref.file !== file) throw new ArchiveError('not-found', `reading ${ref.file}: there is only ${file}`)
      const found = exchanges.get(ref.offset)
      if (found === undefined || found.length !== ref.length) {
        throw new ArchiveError('bad-pointer', `reading ${file} ${ref.offset}+${ref.length}: not one whole record`)
      }
      return recordOf(found.exchange)
    },
    async close() {
      closed = true
    },
  }
}

function recordOf(exchange: ArchiveExchange): ArchivedRecord {
  const { revisit } = exchange
  const bodyBytes = revisit?.profile === 'server-not-modified' ? null : exchange.rawBody.length
  const http = parseHttpResponse(coherentHead(exchange.responseHead, bodyBytes))
  return {
    url: headerUri(exchange.url),
    dateMs: exchange.startedAtMs,
    type: revisit === null ? 'response' : 'revisit',
    status: http.status,
    headers: http.headers,
    rawBody: revisit === null ? exchange.rawBody : http.body,
  }
}
