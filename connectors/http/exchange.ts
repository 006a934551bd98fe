import type { Dispatcher } from 'undici'
import type { Clock, Timer } from '../clock/types.ts'
import type { Faults } from '../faults/types.ts'
import { type BodyDecoder, contentCodings, createBodyDecoder } from './decode.ts'
import { HttpFailure, httpError, messageOf } from './errors.ts'
import type { ResponseTap } from './tap.ts'
import type { HttpError, HttpOutcome, HttpRequest, HttpTimes, Truncation } from './types.ts'

export interface ExchangeOptions {
  readonly clock: Clock
  readonly faults: Faults
  readonly request: HttpRequest
  readonly requestHead: Buffer
  readonly maxHeaderCount: number
  readonly rateWindowMs: number
  /** Of the connection that the request is about to be written to. */
  tap(): ResponseTap | null
  /** Breaks off a connection attempt that has not come to the request yet. */
  abandon(error: Error): void
  done(outcome: HttpOutcome): void
}

export interface Exchange extends Dispatcher.DispatchHandler {
  cancel(): void
}

type Head = {
  status: number
  httpVersion: '1.0' | '1.1'
  statusText: string
  headers: (readonly [string, string])[]
  atMonotonicMs: number
}

/** Thrown in the turn that would write: undici then drops the request and keeps the connection. */
class NotStarted extends Error {}

/**
 * One request on undici, as a handler of its events: the start rule, the deadlines, the caps, the outcome. undici's own
 * timeouts are off, since time comes from the clock.
 */
export function createExchange(options: ExchangeOptions): Exchange {
  const { clock, request, faults } = options
  let controller: Dispatcher.DispatchController | null = null
  let tap: ResponseTap | null = null
  let settled = false
  let notStarted = false
  let started: { wallMs: number; monotonicMs: number } | null = null
  let ended: { wallMs: number; monotonicMs: number } | null = null
  let head: Head | null = null
  let decoder: BodyDecoder | null = null
  let codingKnown = true
  const raw: Buffer[] = []
  let rawBytes = 0
  let cut: { truncated: Truncation; error: HttpError | null } | null = null
  const timers = new Set<Timer>()
  let phaseTimer = after(request.connectTimeoutMs, 'connect-timeout', 'connecting')

  function after(delayMs: number, code: HttpError, what: string): Timer {
    const timer = clock.setTimer(delayMs, () => stop(new HttpFailure(code, `${what} took over ${delayMs} ms`)))
    timers.add(timer)
    return timer
  }
  function cancelTimer(timer: Timer): void {
    timer.cancel()
    timers.delete(timer)
  }

  /** Ends the exchange from our side. With a head there, what came of the body is kept. */
  function stop(error: HttpFailure, truncated: Truncation = 'time', reported: HttpError | null = error.code): void {
    if (settled || ended !== null) return
    if (head !== null) cut = { truncated, error: reported }
    if (controller !== null) controller.abort(error)
    else options.abandon(error)
    finish(error)
  }

  function finish(error: unknown): void {
    if (settled || ended !== null) return
    ended = { wallMs: clock.nowMs(), monotonicMs: clock.monotonicMs() }
    for (const timer of timers) timer.cancel()
    timers.clear()
    if (notStarted) settle({ kind: 'not-started' })
    else if (head === null) fail(error)
    else conclude(head, error)
  }

  function fail(error: unknown): void {
    decoder?.abort()
    const code = httpError(error, 'head')
    settle({
      kind: 'error',
      error: code,
      message: messageOf(error),
      written: started !== null,
      times: times(),
    })
  }

  function conclude(known: Head, error: unknown): void {
    if (cut === null && error !== null) cut = { truncated: 'disconnect', error: httpError(error, 'body') }
    const rawBody = raw.length === 1 ? raw[0]! : Buffer.concat(raw)
    if (decoder === null) {
      respond(known, rawBody, codingKnown ? rawBody : Buffer.alloc(0), false)
      return
    }
    decoder.end(cut === null, ({ body, cut: bodyCut, broken }) => {
      if (bodyCut && cut === null) cut = { truncated: 'length', error: null }
      respond(known, rawBody, body, broken)
    })
  }

  function respond(known: Head, rawBody: Buffer, body: Buffer, broken: boolean): void {
    const unreadable = broken || (!codingKnown && rawBody.length > 0)
    settle({
      kind: 'response',
      status: known.status,
      statusText: known.statusText,
      httpVersion: known.httpVersion,
      headers: known.headers,
      rawBody,
      body,
      truncated: cut?.truncated ?? 'none',
      bodyError: cut?.error ?? (unreadable ? 'protocol' : null),
      times: times(),
      requestHead: options.requestHead,
    })
  }

  function settle(outcome: HttpOutcome): void {
    if (settled) return
    settled = true
    options.done(outcome)
  }

  function times(): HttpTimes {
    return {
      startedAtMs: started?.wallMs ?? 0,
      endedAtMs: ended!.wallMs,
      startedMonotonicMs: started?.monotonicMs ?? 0,
      endedMonotonicMs: ended!.monotonicMs,
      headersMs: head === null || started === null ? 0 : head.atMonotonicMs - started.monotonicMs,
    }
  }

  /** Bytes in a window, not the silence between two: a server that drips a byte a second is cut too. */
  function watchRate(bytesBefore: number): void {
    const timer = clock.setTimer(options.rateWindowMs, () => {
      timers.delete(timer)
      if ((rawBytes - bytesBefore) * 1000 >= request.minBytesPerSec * options.rateWindowMs) return watchRate(rawBytes)
      stop(new HttpFailure('body-timeout', `the body came at under ${request.minBytesPerSec} bytes/s`))
    })
    timers.add(timer)
  }

  return {
    onRequestStart(control) {
      // undici sends a request again whose connection it gave up itself: never twice here.
      if (started !== null || settled) throw new HttpFailure('reset', 'the connection closed')
      if (!request.mayStart()) {
        notStarted = true
        throw new NotStarted()
      }
      controller = control
      tap = options.tap()
      tap?.begin()
      started = { wallMs: clock.nowMs(), monotonicMs: clock.monotonicMs() }
      cancelTimer(phaseTimer)
      phaseTimer = after(request.headersTimeoutMs, 'headers-timeout', 'waiting for headers')
      after(request.totalTimeoutMs, 'total-timeout', 'the exchange')
    },
    onResponseStart(control, status, _parsed, statusText) {
      if (status < 200 || ended !== null) return
      cancelTimer(phaseTimer)
      const headers = rawPairs(control.rawHeaders)
      if (headers.length > options.maxHeaderCount) {
        return stop(new HttpFailure('protocol', `the response has ${headers.length} header fields`))
      }
      head = {
        status,
        httpVersion: tap?.httpVersion() ?? '1.1',
        statusText: statusText ?? '',
        headers,
        atMonotonicMs: clock.monotonicMs(),
      }
      if (status === 204 || status === 304) return
      if (!request.accepts(fieldValues(headers, 'content-type')[0] ?? null)) {
        return stop(new HttpFailure('reset', 'the content type is not wanted'), 'type', null)
      }
      const codings = contentCodings(fieldValues(headers, 'content-encoding'))
      codingKnown = codings !== null
      if (codings !== null && codings.length > 0) {
        decoder = createBodyDecoder(codings, request.maxBodyBytes, () =>
          stop(new HttpFailure('reset', 'the body is over its cap'), 'length', null),
        )
      }
      watchRate(0)
    },
    onResponseData(_control, chunk) {
      if (ended !== null) return
      const room = request.maxBodyBytes - rawBytes
      // A copy: the chunk is a view on undici's parser memory or on a buffer much larger than it.
      const kept = Buffer.from(chunk.length > room ? chunk.subarray(0, room) : chunk)
      if (rawBytes === 0) faults.hit('mid-body')
      rawBytes += kept.length
      raw.push(kept)
      decoder?.push(kept)
      if (chunk.length > room) stop(new HttpFailure('reset', 'the body is over its cap'), 'length', null)
    },
    onResponseEnd() {
      finish(null)
    },
    onResponseError(_control, error) {
      finish(error)
    },
    cancel() {
      stop(new HttpFailure('reset', 'cancelled'), 'disconnect')
    },
  }
}

function rawPairs(raw: unknown): (readonly [string, string])[] {
  const pairs: (readonly [string, string])[] = []
  if (!Array.isArray(raw)) return pairs
  // Header bytes have no charset: latin1 keeps every one of them.
  const text = (part: unknown): string => (Buffer.isBuffer(part) ? part.toString('latin1') : String(part))
  for (let i = 0; i + 1 < raw.length; i += 2) pairs.push([text(raw[i]), text(raw[i + 1])])
  return pairs
}

function fieldValues(headers: readonly (readonly [string, string])[], name: string): string[] {
  return headers.filter(([field]) => field.toLowerCase() === name).map(([, value]) => value)
}
