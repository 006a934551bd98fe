import type { Clock, Timer } from './types.ts'

/** A clock that stands still until it is told to move. Timers fire in order of (time, creation). */
export interface VirtualClock extends Clock {
  /** Moves to `toMonotonicMs`, firing each timer on the way at its own time. */
  advanceTo(toMonotonicMs: number): void
  /** When the next timer is due, in monotonic milliseconds; undefined if there is none. */
  nextTimerMs(): number | undefined
}

type Entry = { atMs: number; order: number; callback: () => void; cancelled: boolean }

export function createVirtualClock(startWallMs: number): VirtualClock {
  let monotonicMs = 0
  let order = 0
  const heap: Entry[] = []

  function peek(): Entry | undefined {
    while (heap.length > 0 && heap[0]!.cancelled) pop(heap)
    return heap[0]
  }

  return {
    nowMs: () => Math.floor(startWallMs + monotonicMs),
    monotonicMs: () => monotonicMs,
    setTimer(delayMs, callback): Timer {
      const entry: Entry = { atMs: monotonicMs + Math.max(0, delayMs), order: order++, callback, cancelled: false }
      push(heap, entry)
      return {
        cancel() {
          entry.cancelled = true
        },
      }
    },
    nextTimerMs: () => peek()?.atMs,
    advanceTo(toMs) {
      for (let next = peek(); next !== undefined && next.atMs <= toMs; next = peek()) {
        pop(heap)
        monotonicMs = Math.max(monotonicMs, next.atMs)
        next.callback()
      }
      monotonicMs = Math.max(monotonicMs, toMs)
    },
  }
}

function before(a: Entry, b: Entry): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order)
}

function push(heap: Entry[], entry: Entry): void {
  let i = heap.length
  heap.push(entry)
  while (i > 0) {
    const parent = (i - 1) >> 1
    if (!before(entry, heap[parent]!)) break
    heap[i] = heap[parent]!
    i = parent
  }
  heap[i] = entry
}

function pop(heap: Entry[]): void {
  const last = heap.pop()
  if (last === undefined || heap.length === 0) return
  let i = 0
  for (;;) {
    let child = 2 * i + 1
    if (child >= heap.length) break
    if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child++
    if (!before(heap[child]!, last)) break
    heap[i] = heap[child]!
    i = child
  }
  heap[i] = last
}
