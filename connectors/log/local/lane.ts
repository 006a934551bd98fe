import type { Clock, Timer } from '../../clock/types.ts'
import { LogError } from '../errors.ts'
import type { Batch, Input, Lane } from '../types.ts'
import { createReader, type Reader } from './reader.ts'
import type { PartitionLog } from './storage.ts'
import { createUnit, type UnitOwner } from './unit.ts'

type Cursor = { readonly input: Input; readonly reader: Reader; isPaused: boolean }
type Waiting = {
  readonly maxBytes: number
  readonly timer: Timer
  readonly resolve: (batches: readonly Batch[]) => void
  readonly reject: (error: unknown) => void
}

/** What a lane needs of its log. */
export interface LaneOwner extends Omit<UnitOwner, 'ended'> {
  readonly clock: Clock
  /** Throws LogError `closed` when the log or the lane is closed. */
  check(doing: string): void
  closed(): void
}
export interface LocalLane extends Lane {
  /** Told after records have become visible in some partitions. */
  wake(changed: readonly PartitionLog[]): void
  isClosed(): boolean
}

export function createLane(id: string, owner: LaneOwner): LocalLane {
  const cursors = new Map<Input, Cursor>()
  let order: Cursor[] = []
  let first = 0
  let waiting: Waiting | undefined
  let unitIsOpen = false
  let closed = false
  const arena = { buffer: Buffer.alloc(0) }
  const unitOwner: UnitOwner = {
    ...owner,
    ended() {
      unitIsOpen = false
    },
  }

  /**
   * Inputs take turns, a batch each, and each poll begins one further: so a full one cannot starve the others, and
   * what was committed together is read together, while its part of the journal is at hand.
   */
  function take(maxBytes: number): Batch[] {
    const batches: Batch[] = []
    const count = order.length
    let left = maxBytes
    for (let n = first, idle = 0; idle < count && (left > 0 || batches.length === 0); n = (n + 1) % count) {
      const { reader, isPaused } = order[n]!
      const batch = isPaused ? undefined : reader.next(left, batches.length === 0)
      if (batch === undefined) {
        idle++
        continue
      }
      idle = 0
      left -= reader.lastBytes
      batches.push(batch)
    }
    if (batches.length > 0) first = (first + 1) % count
    return batches
  }

  function answer(batches: readonly Batch[]): void {
    const poll = waiting
    waiting = undefined
    poll?.timer.cancel()
    poll?.resolve(batches)
  }

  function answerIfAny(): void {
    if (waiting === undefined) return
    try {
      const batches = take(waiting.maxBytes)
      if (batches.length > 0) answer(batches)
    } catch (error) {
      // Of the reader's own doing: it must not reach whoever committed.
      const { timer, reject } = waiting
      waiting = undefined
      timer.cancel()
      reject(error)
    }
  }

  const lane: LocalLane = {
    assign(at) {
      owner.check(`assigning inputs to lane ${id}`)
      // Whoever waits asked for other inputs.
      answer([])
      cursors.clear()
      for (const [input, next] of at) {
        const log = owner.resolve(input, `assigning inputs to lane ${id}`)
        cursors.set(input, {
          input,
          reader: createReader(log, input, next),
          isPaused: false,
        })
      }
      order = [...cursors.values()]
      first = 0
    },
    pause(input, on) {
      const cursor = cursors.get(input)
      if (cursor === undefined) return
      cursor.isPaused = on
      if (!on) answerIfAny()
    },
    poll(maxBytes, maxWaitMs) {
      owner.check(`polling lane ${id}`)
      if (waiting !== undefined) throw new Error(`polling lane ${id} twice at a time`)
      const batches = take(maxBytes)
      if (batches.length > 0 || maxWaitMs <= 0) return batches
      return new Promise((resolve, reject) => {
        const timer = owner.clock.setTimer(maxWaitMs, () => answer([]))
        waiting = { maxBytes, timer, resolve, reject }
      })
    },
    ends(p) {
      const log = owner.resolve(p, 'asking for the end')
      return { stable: log.stable, high: log.end, atMs: owner.clock.nowMs() }
    },
    begin(mode) {
      owner.check(`beginning a unit on lane ${id}`)
      if (unitIsOpen) throw new Error(`beginning a unit on lane ${id} while another is open`)
      unitIsOpen = true
      return createUnit(mode, unitOwner, arena)
    },
    close() {
      if (closed) return
      closed = true
      answer([])
      cursors.clear()
      order = []
      owner.closed()
    },
    wake(changed) {
      if (waiting === undefined) return
      if (order.some(({ reader, isPaused }) => !isPaused && changed.includes(reader.log))) answerIfAny()
    },
    isClosed: () => closed,
  }
  return lane
}

export function laneClosed(id: string, doing: string): LogError {
  return new LogError('closed', `${doing}: lane ${id} is closed`)
}
