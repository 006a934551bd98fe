import type { Clock, Timer } from '../../clock/types.ts'
import { LogError } from '../errors.ts'
import type { Batch, Input, Lane } from '../types.ts'
import { createReader, type Reader } from './reader.ts'
import type { PartitionLog } from './storage.ts'
import { createUnit, type UnitOwner } from './unit.ts'

type Cursor = {
  readonly input: Input
  readonly reader: Reader
  isPaused: boolean
}

/** What a lane needs of its log. */
export interface LaneOwner extends Omit<UnitOwner, 'ended'> {
  readonly clock: Clock
  /** Throws LogError `closed` when the log or the lane's hold on its id has ended. */
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
  let waiting:
    | {
        maxBytes: number
        timer: Timer
        answer: (batches: readonly Batch[]) => void
      }
    | undefined
  let unitIsOpen = false
  let closed = false
  const arena = { buffer: Buffer.alloc(0) }
  const unitOwner: UnitOwner = {
    ...owner,
    ended() {
      unitIsOpen = false
    },
  }

  /** Takes turns: each poll begins one input further, so that a full one cannot starve the others. */
  function take(maxBytes: number): Batch[] {
    const batches: Batch[] = []
    let left = maxBytes
    const count = order.length
    for (let n = 0; n < count; n++) {
      const { reader, isPaused } = order[(first + n) % count]!
      if (isPaused) continue
      while (left > 0 || batches.length === 0) {
        const batch = reader.next(left, batches.length === 0)
        if (batch === undefined) break
        left -= reader.lastBytes
        batches.push(batch)
      }
    }
    if (batches.length > 0) first = (first + 1) % count
    return batches
  }

  function answer(batches: readonly Batch[]): void {
    if (waiting === undefined) return
    const { timer, answer } = waiting
    waiting = undefined
    timer.cancel()
    answer(batches)
  }

  function answerIfAny(): void {
    if (waiting === undefined) return
    const batches = take(waiting.maxBytes)
    if (batches.length > 0) answer(batches)
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
      return new Promise((resolve) => {
        waiting = {
          maxBytes,
          answer: resolve,
          timer: owner.clock.setTimer(maxWaitMs, () => answer([])),
        }
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
