import type { Clock } from './types.ts'

/** The machine's own clocks. */
export function createSystemClock(): Clock {
  return {
    nowMs: () => Date.now(),
    monotonicMs: () => performance.now(),
    setTimer(delayMs, callback) {
      const timer = setTimeout(callback, Math.max(0, Math.ceil(delayMs)))
      return { cancel: () => clearTimeout(timer) }
    },
  }
}
