import type { Row } from '../../connectors/analytics/types.ts'
import type { HostPolicy } from '../../schemas/types.ts'
import { timeOf, timeOrNull } from './columns.ts'

/** A record of `host-policies` as a row of `hosts`. `key`: the host; its latest record has the highest offset. */
export function hostsRow(key: string, h: HostPolicy, offset: number, timestampMs: number): Row {
  return {
    host: key,
    site: h.site,
    version: offset,
    address: h.address ?? '',
    gate: h.gate ?? '',
    delay_ms: h.delayMs,
    delay_reason: h.delayReason,
    back_off_until: timeOrNull(h.backOffUntil),
    back_off_reason: h.backOffReason ?? '',
    origins: h.origins.map((o) => o.origin),
    robots_verdicts: h.origins.map((o) => o.verdict),
    robots_versions: h.origins.map((o) => o.robotsVersion),
    unreachable_origins: h.origins.filter((o) => o.robotsVersion === 'unreachable').map((o) => o.origin),
    updated_at: timeOf(timestampMs),
  }
}
