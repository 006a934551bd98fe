import { describe, test } from 'node:test'
import { commitChecks } from './log/commits.ts'
import { groupChecks } from './log/groups.ts'
import type { LogHarness } from './log/harness.ts'
import { readChecks } from './log/reads.ts'
import { reopenChecks } from './log/reopen.ts'

/** One promise of the port, tested on a log of its own; it rejects where the promise is broken. */
export type LogCheck = (harness: LogHarness) => Promise<void>

/** Every promise of the Log port by name. */
export const logChecks: Readonly<Record<string, LogCheck>> = {
  ...commitChecks,
  ...readChecks,
  ...groupChecks,
}
/** Those that need a log which outlives its process. */
export const durableLogChecks: Readonly<Record<string, LogCheck>> = reopenChecks

/** The conformance suite of the Log port. `durable`: the harness can reopen. */
export function testLog(adapter: string, createHarness: () => LogHarness, durable: boolean): void {
  describe(`${adapter}: Log port`, () => {
    for (const [name, check] of Object.entries(durable ? { ...logChecks, ...durableLogChecks } : logChecks)) {
      test(name, () => runCheck(check, createHarness()))
    }
  })
}

export async function runCheck(check: LogCheck, harness: LogHarness): Promise<void> {
  try {
    await check(harness)
  } finally {
    await harness.close()
  }
}
