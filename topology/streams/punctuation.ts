import type { Cancellable, Punctuator } from './types.ts'

type Schedule = {
  readonly intervalMs: number
  readonly punctuator: Punctuator
  nextMs: number
  cancelled: boolean
}

/** The punctuations of one task on one time line, stream time or wall clock. Missed ones are made up by one call. */
export class Punctuations {
  readonly #schedules: Schedule[] = []
  /** The earliest next one; infinity = none. */
  dueMs = Number.POSITIVE_INFINITY

  add(intervalMs: number, firstMs: number, punctuator: Punctuator): Cancellable {
    if (!(intervalMs > 0)) throw new RangeError(`scheduling a punctuation each ${intervalMs} ms`)
    const schedule: Schedule = {
      intervalMs,
      punctuator,
      nextMs: firstMs,
      cancelled: false,
    }
    this.#schedules.push(schedule)
    this.dueMs = Math.min(this.dueMs, firstMs)
    return {
      cancel: () => {
        schedule.cancelled = true
        const at = this.#schedules.indexOf(schedule)
        if (at >= 0) this.#schedules.splice(at, 1)
        this.#findDue()
      },
    }
  }

  /** Those that are due at `nowMs`, in the order of scheduling. */
  run(nowMs: number, call: (punctuator: Punctuator) => void): void {
    for (const schedule of [...this.#schedules]) {
      if (schedule.cancelled || schedule.nextMs > nowMs) continue
      const missed = Math.floor((nowMs - schedule.nextMs) / schedule.intervalMs)
      schedule.nextMs += (missed + 1) * schedule.intervalMs
      call(schedule.punctuator)
    }
    this.#findDue()
  }

  clear(): void {
    this.#schedules.length = 0
    this.dueMs = Number.POSITIVE_INFINITY
  }

  #findDue(): void {
    this.dueMs = this.#schedules.reduce((due, s) => Math.min(due, s.nextMs), Number.POSITIVE_INFINITY)
  }
}
