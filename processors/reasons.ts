import type { DecisionReason } from '../schemas/types.ts'

/** Counts by reason code, with the first three examples of each. */
export interface ReasonCounts {
  add(code: string, example: string): void
  readonly total: number
  /** In the order in which the codes came up. */
  list(): DecisionReason[]
}

export function createReasonCounts(): ReasonCounts {
  const reasons = new Map<string, DecisionReason>()
  let total = 0
  return {
    add(code, example) {
      total++
      let reason = reasons.get(code)
      if (reason === undefined) {
        reason = { code, count: 0, examples: [] }
        reasons.set(code, reason)
      }
      reason.count++
      if (reason.examples.length < 3) {
        reason.examples.push(
          example.length > maxExampleLength ? `${example.slice(0, maxExampleLength)}…`.toWellFormed() : example,
        )
      }
    },
    get total() {
      return total
    },
    list: () => [...reasons.values()],
  }
}

/** An href may be 256 KiB long; a decision is read by people. */
const maxExampleLength = 300
