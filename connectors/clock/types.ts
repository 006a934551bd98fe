/** Time is an argument: everything that asks for it or waits takes a Clock. */
export interface Clock {
  /** Wall clock, whole milliseconds since the epoch. May jump. */
  nowMs(): number
  /** Monotonic, milliseconds, fractions allowed. Never jumps. */
  monotonicMs(): number
  /** Calls back once after `delayMs` of monotonic time. */
  setTimer(delayMs: number, callback: () => void): Timer
}
export interface Timer {
  cancel(): void
}
