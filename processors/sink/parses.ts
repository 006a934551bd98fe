import type { Row } from '../../connectors/analytics/types.ts'
import type { Parsed } from '../../schemas/types.ts'
import { hexOf, pageColumns, timeOf, uint64Of } from './columns.ts'

/** A record of `parsed` as a row of `parses`. `key`: the canonical URL. */
export function parsesRow(key: string, p: Parsed): Row {
  return {
    ...pageColumns(key),
    fetch_id: p.fetchId,
    fetched_at: timeOf(p.fetchedAt),
    parse_version: p.parseVersion,
    title: p.title ?? '',
    snippet: p.snippet ?? '',
    language: p.language ?? '',
    content_hash_hex: hexOf(p.contentHash),
    simhash: uint64Of(p.simhash),
    simhash2: uint64Of(p.simhash2),
    token_count: p.tokenCount,
    noindex: p.noindex,
    nofollow: p.nofollow,
    canonical_url: p.canonicalUrl ?? '',
    link_count: p.linkCount,
    extracted: p.extracted,
  }
}
