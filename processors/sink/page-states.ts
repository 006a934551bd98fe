import type { Row } from '../../connectors/analytics/types.ts'
import type { PageState } from '../../schemas/types.ts'
import { hexOf, pageColumns, timeOf, timeOrNull, uint64Of } from './columns.ts'

/** A record of `page-states` as a row of `page_states`. `key`: the canonical URL. */
export function pageStatesRow(key: string, s: PageState): Row {
  return {
    ...pageColumns(key),
    sequence: s.sequence,
    state: s.state,
    reason: s.reason,
    evidence: s.evidence ?? '',
    since: timeOf(s.since),
    next_crawl_at: timeOrNull(s.next),
    depth: s.depth,
    importance: s.importance,
    change_count: s.changeCount,
    last_crawled_at: timeOrNull(s.lastCrawledAt),
    http_status: s.httpStatus,
    content_hash_hex: hexOf(s.contentHash),
    simhash: uint64Of(s.simhash),
    duplicate_of: s.duplicateOf ?? '',
    last_fetch_id: s.lastFetchId ?? '',
  }
}
