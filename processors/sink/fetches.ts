import type { Row } from '../../connectors/analytics/types.ts'
import { hash128 } from '../../schemas/hash.ts'
import type { Fetched } from '../../schemas/types.ts'
import { base32Of, hexOf, timeOf, uint64Of } from './columns.ts'

/** A record of `fetched` as a row of `fetches`. `key`: the record's, for a page its canonical URL. */
export function fetchesRow(key: string, f: Fetched): Row {
  const wasAsked = f.startedAt > 0
  return {
    fetch_id: f.fetchId,
    lease_id: f.leaseId,
    outcome_kind: f.outcomeKind,
    entry_kind: f.entryKind,
    host: f.host,
    site: f.site,
    gate: f.gate,
    address: f.address ?? '',
    url: f.url,
    url_hash_hex: f.outcomeKind === 'page' ? hash128(key).toString('hex') : '',
    depth: f.depth,
    attempt: f.attempt,
    fetch_time: timeOf(wasAsked ? f.startedAt : f.endedAt),
    started_at: wasAsked ? timeOf(f.startedAt) : null,
    ended_at: timeOf(f.endedAt),
    headers_ms: f.headersMs,
    fetch_status: f.status,
    fetch_redirect: f.location ?? '',
    error: f.error,
    error_message: f.errorMessage ?? '',
    content_mime_type: mimeTypeOf(f.contentType),
    content_charset: f.charset ?? '',
    content_digest: base32Of(f.payloadDigest),
    content_truncated: f.truncated === 'none' ? '' : f.truncated,
    raw_bytes: f.rawBytes,
    body_bytes: f.bodyBytes,
    revisit: f.revisit,
    content_hash_hex: hexOf(f.parse?.contentHash ?? null),
    simhash: uint64Of(f.parse?.simhash ?? null),
    token_count: f.parse?.tokenCount ?? 0,
    link_count: f.parse?.linkCount ?? 0,
    warc_filename: f.archive?.file ?? '',
    warc_record_offset: f.archive?.offset ?? 0,
    warc_record_length: f.archive?.length ?? 0,
    delay_ms: f.delayMs,
    delay_reason: f.delayReason,
    robots_version: f.robotsVersion ?? '',
    retry_after_ms: f.retryAfterMs ?? 0,
    unstarted: f.unstarted.length,
    reason: f.reason ?? '',
  }
}

/** Without parameters, in lower case; bounded, since the column keeps a dictionary. */
function mimeTypeOf(contentType: string | null): string {
  return (contentType ?? '').slice(0, 200).split(';', 1)[0]!.trim().toLowerCase()
}
