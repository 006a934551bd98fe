import { noFaults } from '../../connectors/faults/types.ts'
import type { Visit } from '../../schemas/types.ts'
import { StopProcessError } from '../../topology/streams/errors.ts'
import type { ProcessorSupplier } from '../../topology/streams/types.ts'
import { createGaps } from './gaps.ts'
import { startResolve } from './resolve.ts'
import type { FetchOptions, FetchOutput, FetchSettings } from './types.ts'
import { startVisit } from './visit.ts'

/**
 * Takes visits and works them off: one request at a time for each host, each with its outcome in `fetched` after its
 * links, its text and its decisions. Runs as an async stage (`ack_on_take`); it keeps no state that outlives it: what is
 * lost with a process comes back through the visit's lease.
 *
 * Throws StopProcessError `clock-skew` for a visit stamped further ahead than clocks may differ.
 */
export function createFetch(options: FetchOptions): ProcessorSupplier<string, Visit, string, FetchOutput> {
  const settings = withDefaults(options)
  return (context) => {
    // Of this task alone: after it moved away and back, what it remembered is void.
    const gaps = createGaps(settings.maxHosts)
    const open = new Set<{ stop(): void }>()

    function start(visit: Visit, done: () => void): void {
      let ended = false
      let work: { stop(): void } | null = null
      const end = (): void => {
        ended = true
        if (work !== null) open.delete(work)
        done()
      }
      work =
        visit.visitKind === 'resolve'
          ? startResolve(settings, context, visit, end)
          : startVisit(settings, context, gaps, visit, end)
      if (!ended) open.add(work)
    }

    return {
      process({ key, value: visit }) {
        // A tombstone: the host is idle. It is no work, and what runs goes on.
        if (visit === null) return
        const aheadMs = visit.notBefore - context.clock.nowMs()
        if (aheadMs > settings.skewAllowanceMs + settings.lookaheadMs) {
          throw new StopProcessError(
            `taking a visit of ${visit.host}: it is stamped ${Math.round(aheadMs)} ms ahead: clocks differ`,
            { code: 'clock-skew' },
          )
        }
        if (visit.visitKind !== 'resolve' && visit.address === null) {
          throw new TypeError(`taking a visit of ${visit.host}: it has no address`)
        }
        context.async.take(key, (done) => start(visit, done))
      },
      close() {
        // The task is somebody else's now: nothing more may start, what is open is broken off.
        for (const work of [...open]) work.stop()
      },
    }
  }
}

function withDefaults(options: FetchOptions): FetchSettings {
  return {
    extract: () => ({}),
    parseVersion: 1,
    allowPrivate: false,
    requestTimeoutMs: 60_000,
    connectTimeoutMs: 10_000,
    headersTimeoutMs: 30_000,
    minBytesPerSec: 50,
    maxPageBytes: 10 * 1024 * 1024,
    maxRobotsBytes: 512 * 1024,
    skewAllowanceMs: 5_000,
    lookaheadMs: 500,
    gapMarginMs: 0,
    maxHosts: 65_536,
    faults: noFaults,
    stopping: new AbortController().signal,
    ...options,
  }
}
