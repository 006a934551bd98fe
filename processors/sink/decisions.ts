import type { Row } from '../../connectors/analytics/types.ts'
import type { Decision } from '../../schemas/types.ts'
import { siteOf, siteOfKey } from '../site.ts'
import { timeOf } from './columns.ts'

/** A record of `decisions` as rows of `decisions`, one a reason. `key`: the source page, or the URL decided on. */
export function decisionsRows(key: string, d: Decision): Row[] {
  // Seeds and the like are sources without a host.
  const host = URL.parse(key)?.hostname ?? ''
  const site = host === '' ? siteOfKey(key) : siteOf(host)
  return d.reasons.map(({ code, count, examples }) => ({
    processor: d.processor,
    url: key,
    host,
    site,
    fetch_id: d.fetchId ?? '',
    code,
    count,
    examples,
    evidence: d.evidence ?? '',
    at: timeOf(d.at),
  }))
}
