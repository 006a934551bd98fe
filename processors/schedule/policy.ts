import type { HostPolicy, OriginPolicy } from '../../schemas/types.ts'
import { delayOf } from './delay.ts'
import type { OriginRecord } from './records.ts'
import type { Turn } from './turn.ts'

const maxRules = 1000
/** Over all origins of a host: the record must fit into its topic, whatever its servers say. */
const maxRuleCharacters = 128 * 1024

/** Writes the host's record in `host-policies`. */
export function forwardPolicy(turn: Turn): void {
  const { host, name, desk } = turn
  const { delayMs, reason } = delayOf(host, desk.settings)
  let left = maxRuleCharacters
  const origins = host.origins
    .filter((o) => o.verdict !== 'unknown')
    .map((o) => {
      const policy = originPolicy(turn, o, left)
      left = policy.rules.reduce((sum, text) => sum - text.length, left)
      return policy
    })
  const value: HostPolicy = {
    site: host.site,
    address: host.address,
    gate: host.gate,
    delayMs,
    delayReason: reason,
    backOffUntil: host.park?.until ?? null,
    backOffReason: host.park === null ? null : `${host.park.reason}: ${host.park.evidence}`,
    origins,
  }
  desk.context.forward({ key: name, value }, 'host-policies')
}

function originPolicy(turn: Turn, origin: OriginRecord, maxCharacters: number): OriginPolicy {
  const rules = origin.bodyHash === null ? undefined : turn.desk.rules.rulesOf(origin.bodyHash)
  return {
    origin: origin.origin,
    robotsVersion: origin.robotsVersion,
    verdict: origin.verdict === 'unknown' ? 'disallow-all' : origin.verdict,
    httpStatus: origin.httpStatus,
    fetchedAt: origin.fetchedAt,
    expiresAt: origin.expiresAt,
    crawlDelayMs: origin.crawlDelayMs,
    rules: origin.verdict === 'rules' && rules !== undefined ? fitting(rules.rules, maxCharacters) : [],
  }
}

function fitting(rules: readonly { readonly text: string }[], maxCharacters: number): string[] {
  const texts: string[] = []
  let length = 0
  for (const { text } of rules.slice(0, maxRules)) {
    length += text.length
    if (length > maxCharacters) break
    texts.push(text)
  }
  return texts
}
