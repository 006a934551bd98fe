import type { Lane, Unit } from '../../connectors/log/types.ts'
import { type Forwards, Outputs, type Slot } from './outputs.ts'
import { type Steps, wait } from './steps.ts'

/** What shares one flush. All of `firsts` is durable before any of `lasts`. */
type Group = {
  readonly firsts: Outputs
  readonly lasts: Outputs
  readonly acked: (() => void)[]
}

/**
 * Outputs of async stages: an idempotent unit, outside every transaction. While one flush is under way what arrives
 * gathers, and shares the next. Of each completion the last record follows when the others are durable.
 */
export class Outbox {
  readonly #lane: Lane
  readonly #launch: (steps: Steps<void>) => void
  readonly #onWritten: (slots: readonly Slot[]) => void
  #unit: Unit | undefined
  readonly #queue: Group[] = []
  readonly #spare: Group[] = []
  #flushing = false
  #waiting: (() => void)[] = []

  /** `launch` runs a flush by itself, to its end or failure. `onWritten`: partitions that got records. */
  constructor(lane: Lane, launch: (steps: Steps<void>) => void, onWritten: (slots: readonly Slot[]) => void) {
    this.#lane = lane
    this.#launch = launch
    this.#onWritten = onWritten
  }

  get isIdle(): boolean {
    return !this.#flushing && this.#queue.length === 0
  }

  /** Takes what was forwarded from index `from` on. `acked` follows when all of it is durable. */
  complete(forwards: Forwards, from: number, acked: (() => void) | undefined): void {
    const last = forwards.length - 1
    const group = this.#groupFor(forwards, from, last)
    if (last >= from) {
      forwards.copyTo(group.firsts, from, last)
      forwards.copyTo(group.lasts, last, last + 1)
    }
    if (acked !== undefined) group.acked.push(acked)
    if (!this.#flushing) this.#launch(this.#flushAll())
  }

  /** Until everything taken so far is durable. */
  *settled(): Steps<void> {
    if (this.isIdle) return
    yield* wait(new Promise<void>((resolve) => this.#waiting.push(resolve)))
  }

  /** The group that gathers. A record must not overtake an earlier completion's last one in its own partition. */
  #groupFor(forwards: Forwards, from: number, last: number): Group {
    let group = this.#queue.at(-1)
    if (group !== undefined) {
      for (let i = from; i < last && group !== undefined; i++) if (group.lasts.has(forwards.slot(i))) group = undefined
    }
    if (group === undefined) {
      group = this.#spare.pop() ?? {
        firsts: new Outputs(),
        lasts: new Outputs(),
        acked: [],
      }
      this.#queue.push(group)
    }
    return group
  }

  *#flushAll(): Steps<void> {
    this.#flushing = true
    for (let group = this.#queue.shift(); group !== undefined; group = this.#queue.shift()) {
      this.#unit ??= this.#lane.begin('idempotent')
      if (!group.firsts.isEmpty) {
        group.firsts.appendTo(this.#unit)
        if (this.#unit.orderedFlush !== true) yield* wait(this.#unit.flush())
      }
      if (!group.lasts.isEmpty) {
        group.lasts.appendTo(this.#unit)
        yield* wait(this.#unit.flush())
      }
      this.#onWritten(group.firsts.slots())
      this.#onWritten(group.lasts.slots())
      group.firsts.clear()
      group.lasts.clear()
      for (const acked of group.acked) acked()
      group.acked.length = 0
      this.#spare.push(group)
    }
    this.#flushing = false
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}
