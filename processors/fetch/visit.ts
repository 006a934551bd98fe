import type { Timer } from '../../connectors/clock/types.ts'
import type { HttpOutcome } from '../../connectors/http/types.ts'
import type { Visit, VisitEntry } from '../../schemas/types.ts'
import { StopProcessError } from '../../topology/streams/errors.ts'
import { type Emission, emissionOf, failureOf } from './emission.ts'
import type { Gaps } from './gaps.ts'
import { isWanted, requestHeaders } from './headers.ts'
import { type Asked, fetchedBase } from './records.ts'
import type { FetchContext, FetchSettings } from './types.ts'

/** RFC 9309 §2.3.1.2 asks for at least five. */
const maxRobotsHops = 5
/** After these the host is not worth another try in this visit: nothing of it can be reached, or it asked for quiet. */
const hostErrors = new Set(['refused', 'unreachable', 'reset', 'tls', 'connect-timeout', 'address-refused'])

/**
 * Works a `robots` or `pages` visit off, one request after the other, on the context's clock.
 *
 * The start rule: a request starts when the visit's time has come by the wall clock, the delay since the host's last
 * response has passed by the monotonic clock, and there is time for it before the deadline. It is asked in the turn that
 * writes the request. The visit's first request waits one delay from the taking, unless this fetcher itself had the
 * host's last response and can measure from it.
 */
export function startVisit(
  settings: FetchSettings,
  context: FetchContext,
  gaps: Gaps,
  visit: Visit,
  done: () => void,
): { stop(): void } {
  const { clock } = context
  const takenAtMs = clock.monotonicMs()
  /** The deadline by the monotonic clock too: the wall clock may be set back meanwhile. */
  const deadlineMonotonicMs = takenAtMs + (visit.deadline - clock.nowMs())
  const gapMs = visit.delayMs === 0 ? 0 : visit.delayMs + settings.gapMarginMs
  let earliestMs = firstStartMs(gaps, visit, takenAtMs, gapMs)
  let index = 0
  let hop = 0
  let url = visit.urls[0]?.fetchUrl ?? ''
  let waiting: Timer | null = null
  let running: { cancel(): void } | null = null
  let emitting = 0
  let state: 'open' | 'ended' | 'done' | 'stopped' = 'open'

  const waitMs = (): number => Math.max(visit.notBefore - clock.nowMs(), earliestMs - clock.monotonicMs(), 0)
  const inTime = (): boolean =>
    clock.nowMs() + settings.requestTimeoutMs <= visit.deadline &&
    clock.monotonicMs() + settings.requestTimeoutMs <= deadlineMonotonicMs
  const asked = (): Asked => ({ visit, index, hop, url })

  function attempt(): void {
    waiting = null
    if (state !== 'open') return
    if (settings.stopping.aborted || !inTime()) {
      giveUp(settings.stopping.aborted ? 'stopping' : 'deadline')
      return
    }
    const ms = waitMs()
    if (ms > 0) {
      waiting = clock.setTimer(Math.ceil(ms), attempt)
      return
    }
    const entry = visit.urls[index]!
    running = settings.http.request(
      {
        url,
        address: visit.address!,
        headers: requestHeaders(settings.userAgent, entry),
        maxBodyBytes: entry.entryKind === 'robots' ? settings.maxRobotsBytes : settings.maxPageBytes,
        connectTimeoutMs: settings.connectTimeoutMs,
        headersTimeoutMs: settings.headersTimeoutMs,
        totalTimeoutMs: settings.requestTimeoutMs,
        minBytesPerSec: settings.minBytesPerSec,
        accepts: entry.entryKind === 'robots' ? () => true : isWanted,
        mayStart: () => state === 'open' && !settings.stopping.aborted && inTime() && waitMs() <= 0,
      },
      (outcome) => answered(entry, outcome),
    )
  }

  function answered(entry: VisitEntry, outcome: HttpOutcome): void {
    running = null
    if (state !== 'open') return
    if (outcome.kind === 'not-started') {
      attempt()
      return
    }
    const { endedAtMs, endedMonotonicMs } = outcome.times
    gaps.ended(visit.host, {
      endedAtMs: Math.round(endedAtMs),
      endedMonotonicMs,
    })
    earliestMs = endedMonotonicMs + gapMs
    if (outcome.kind === 'error') {
      emit(failureOf(asked(), outcome))
      proceed(visit.visitKind === 'pages' && hostErrors.has(outcome.error) ? outcome.error : null)
      return
    }
    let emission: Emission
    const canHop = entry.entryKind === 'robots' && hop < maxRobotsHops
    try {
      emission = emissionOf(settings, asked(), outcome, canHop, clock.nowMs())
    } catch (cause) {
      halt(`archiving ${url}`, cause)
      return
    }
    emit(emission)
    const backOff = outcome.status === 429 || outcome.status === 503 ? 'back-off' : null
    if (emission.hopTo === undefined) {
      proceed(backOff)
      return
    }
    hop++
    url = emission.hopTo
    attempt()
  }

  /** On to the next entry, or to the end: `reason` says why the others must not be tried now. */
  function proceed(reason: string | null): void {
    index++
    hop = 0
    if (index >= visit.urls.length) {
      state = 'ended'
      finish()
      return
    }
    url = visit.urls[index]!.fetchUrl
    if (reason === null) attempt()
    else giveUp(reason)
  }

  /** What waits for its time gives up at once; a request under way ends by itself. */
  function onStopping(): void {
    if (waiting === null) return
    waiting.cancel()
    attempt()
  }

  /** One record names all that was not started. */
  function giveUp(reason: string): void {
    state = 'ended'
    const rest = visit.urls.slice(index)
    const record = fetchedBase({ ...asked(), url: visit.host })
    emit({
      records: [],
      fetched: {
        key: `visit:${visit.host}`,
        value: {
          ...record,
          outcomeKind: 'visit-end',
          endedAt: Math.round(clock.nowMs()),
          unstarted: rest.map(({ key }) => key),
          reason,
        },
      },
      archived: false,
    })
    finish()
  }

  /** One completion a request; `fetched` is its last record, the commit point, and its archive record is safe before. */
  function emit(emission: Emission): void {
    emitting++
    const forward = (): void => {
      context.async.complete(() => {
        for (const { child, key, value } of emission.records) context.forward({ key, value }, child)
        context.forward(emission.fetched, 'fetched')
      })
      emitting--
      finish()
    }
    const synced = emission.archived ? sync() : undefined
    if (synced === undefined) forward()
    else synced.then(() => state !== 'stopped' && forward()).catch((cause) => halt('syncing the archive', cause))
  }

  function sync(): Promise<void> | undefined {
    return settings.archive.sync() ?? undefined
  }

  function finish(): void {
    if (state !== 'ended' || emitting > 0) return
    state = 'done'
    settings.stopping.removeEventListener('abort', onStopping)
    done()
  }

  /** A disk that does not keep what was fetched: nothing may go on. */
  function halt(doing: string, cause: unknown): void {
    if (state === 'stopped' || state === 'done') return
    stop()
    const text = cause instanceof Error ? cause.message : String(cause)
    context.async.complete(() => {
      throw new StopProcessError(`${doing}: ${text}`, {
        code: 'archive',
        cause,
      })
    })
  }

  function stop(): void {
    if (state === 'stopped' || state === 'done') return
    state = 'stopped'
    settings.stopping.removeEventListener('abort', onStopping)
    waiting?.cancel()
    running?.cancel()
    done()
  }

  settings.stopping.addEventListener('abort', onStopping)
  if (visit.urls.length === 0) {
    state = 'ended'
    finish()
  } else attempt()
  return { stop }
}

/** The earliest start of a visit's first request, by the monotonic clock. */
function firstStartMs(gaps: Gaps, visit: Visit, takenAtMs: number, gapMs: number): number {
  if (visit.lastEndedAt === null) return takenAtMs
  const last = gaps.last(visit.host, visit.lastEndedAt)
  return (last?.endedMonotonicMs ?? takenAtMs) + gapMs
}
