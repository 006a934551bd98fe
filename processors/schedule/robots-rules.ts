import { createRecentCache } from '../cache.ts'
import { checkRobots, parseRobots, type RobotsRules, type RobotsVerdict } from '../robots.ts'
import type { OriginRecord } from './records.ts'
import type { ScheduleStores } from './stores.ts'

/** The rules of stored robots.txt bodies, parsed; the last few hundred are remembered. */
export interface RobotsRulesCache {
  /** Undefined when the body is not stored. */
  rulesOf(bodyHash: string): RobotsRules | undefined
  /** Whether the origin's current copy lets `url` be fetched. Without one nothing is allowed. */
  check(origin: OriginRecord, url: string): RobotsVerdict
}

export function createRobotsRules(stores: Pick<ScheduleStores, 'robots'>, token: string): RobotsRulesCache {
  const parsed = createRecentCache<RobotsRules>(256)
  const rulesOf = (bodyHash: string): RobotsRules | undefined => {
    const known = parsed.get(bodyHash)
    if (known !== undefined) return known
    const body = stores.robots.get(bodyHash)
    if (body === undefined) return undefined
    const rules = parseRobots(body, token)
    parsed.set(bodyHash, rules)
    return rules
  }
  return {
    rulesOf,
    check(origin, url) {
      if (origin.verdict === 'allow-all') return allowed
      const rules = origin.verdict === 'rules' && origin.bodyHash !== null ? rulesOf(origin.bodyHash) : undefined
      return rules === undefined ? refused : checkRobots(rules, url)
    },
  }
}

const allowed: RobotsVerdict = { allowed: true, line: null, rule: null }
const refused: RobotsVerdict = { allowed: false, line: null, rule: null }
