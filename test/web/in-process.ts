import { STATUS_CODES } from 'node:http'
import { gunzipSync } from 'node:zlib'
import type { Clock, Timer } from '../../connectors/clock/types.ts'
import type { Resolver } from '../../connectors/dns/types.ts'
import type {
  HttpClient,
  HttpError,
  HttpOutcome,
  HttpRequest,
  HttpTimes,
  Truncation,
} from '../../connectors/http/types.ts'
import type { WebRequest } from './log.ts'
import type { WebModel, WebState } from './model.ts'
import type { ResponsePlan } from './respond.ts'

export interface WebClient {
  readonly http: HttpClient
  readonly resolver: Resolver
}

/** A simulated web in this process. `http` and `resolver` are those of a client that has the web's own clock. */
export interface SimulatedWeb extends WebClient {
  /** By the web's clock, in order of arrival; grows while the crawl runs. */
  readonly log: readonly WebRequest[]
  readonly state: WebState
  /** A client with a clock of its own, e.g. one that is two seconds off, or a process that ends. */
  client(clock: Clock): WebClient
}

/**
 * Serves a model under a clock, usually a virtual one. Nothing is transmitted: a request arrives when it is written, a
 * response ends for both sides at once.
 */
export function createSimulatedWeb(model: WebModel, clock: Clock): SimulatedWeb {
  const state = model.createState(clock.nowMs())
  const log: WebRequest[] = []
  const beganMonotonicMs = clock.monotonicMs()
  // The servers' clock never jumps, whatever becomes of the wall clock that the crawler sees.
  const server: Server = {
    model,
    state,
    log,
    nowMs: () => state.startMs + clock.monotonicMs() - beganMonotonicMs,
  }
  const client = (own: Clock): WebClient => ({
    http: createClient(server, own),
    resolver: createResolver(server, own),
  })
  return { ...client(clock), log, state, client }
}

type Server = {
  readonly model: WebModel
  readonly state: WebState
  readonly log: WebRequest[]
  nowMs(): number
}

function createResolver(server: Server, clock: Clock): Resolver {
  let closed = false
  return {
    resolve(host, done) {
      const plan = server.model.resolve(host, server.state)
      clock.setTimer(plan.delayMs, () => {
        if (closed) return
        const { result } = plan
        done(result.kind === 'ok' ? result : { ...result, message: `resolving ${host}: ${result.error}` })
      })
    },
    close() {
      closed = true
    },
  }
}

function createClient(server: Server, clock: Clock): HttpClient {
  const open = new Set<() => void>()
  return {
    request(request, done) {
      const cancel = startExchange(server, clock, request, (outcome) => {
        open.delete(cancel)
        done(outcome)
      })
      open.add(cancel)
      return { cancel }
    },
    async close() {
      for (const cancel of [...open]) cancel()
    },
  }
}

/** Gives back what cancels the exchange: `done` then hears of a reset, or that nothing was started. */
function startExchange(
  server: Server,
  clock: Clock,
  request: HttpRequest,
  done: (outcome: HttpOutcome) => void,
): () => void {
  const { model, state } = server
  const url = new URL(request.url)
  const host = url.hostname
  const path = url.pathname + url.search
  const calledMs = clock.monotonicMs()
  let ended = false
  let entry: WebRequest | null = null
  let startedAtMs = 0
  let startedMonotonicMs = 0
  let headersMs = 0
  let timer: Timer = clock.setTimer(Math.min(model.connectMs(host), request.connectTimeoutMs), connected)

  const times = (): HttpTimes => ({
    startedAtMs,
    endedAtMs: clock.nowMs(),
    startedMonotonicMs,
    endedMonotonicMs: clock.monotonicMs(),
    headersMs,
  })
  const finish = (outcome: HttpOutcome, complete = false): void => {
    if (ended) return
    ended = true
    timer.cancel()
    if (entry !== null) {
      entry.endMs ??= server.nowMs()
      entry.complete = complete
    }
    done(outcome)
  }
  const fail = (error: HttpError, message: string): void =>
    finish({
      kind: 'error',
      error,
      message: `fetching ${request.url}: ${message}`,
      written: entry !== null,
      times: times(),
    })

  function connected(): void {
    if (model.connectMs(host) > request.connectTimeoutMs) fail('connect-timeout', 'no connection in time')
    else if (!model.isUp(host, server.nowMs(), state)) fail('refused', 'connection refused')
    else if (!request.mayStart()) finish({ kind: 'not-started' })
    else write()
  }

  function write(): void {
    startedAtMs = clock.nowMs()
    startedMonotonicMs = clock.monotonicMs()
    const arrival: WebRequest = {
      host,
      path,
      startMs: server.nowMs(),
      endMs: null,
      status: 0,
      complete: false,
      retryAfterMs: null,
      address: request.address,
    }
    entry = arrival
    server.log.push(arrival)
    if (request.address !== model.addressOf(host)) {
      fail('reset', `${request.address} is not an address of ${host}`)
      return
    }
    const headers = new Map(request.headers)
    const header = (name: string): string | undefined => headers.get(name)
    const plan = model.respond({ method: 'GET', host, path, header, nowMs: server.nowMs() }, state)
    const headersWithinMs = Math.min(request.headersTimeoutMs, remainingMs())
    if (plan.delayBeforeHeadersMs > headersWithinMs) {
      const error = headersWithinMs < request.headersTimeoutMs ? 'total-timeout' : 'headers-timeout'
      timer = clock.setTimer(headersWithinMs, () => fail(error, 'no response head in time'))
      return
    }
    timer = clock.setTimer(plan.delayBeforeHeadersMs, () => {
      if (plan.reset === 'before-headers') {
        fail('reset', 'connection reset')
        return
      }
      arrival.status = plan.status
      arrival.retryAfterMs = plan.retryAfterMs
      headersMs = clock.monotonicMs() - startedMonotonicMs
      receive(plan)
    })
  }

  function remainingMs(): number {
    return Math.max(0, request.totalTimeoutMs - (clock.monotonicMs() - calledMs))
  }

  function receive(plan: ResponsePlan): void {
    const type = plan.headers.find(([name]) => name === 'content-type')?.[1] ?? null
    if (!request.accepts(type)) {
      respond(plan, 0, 'type', null)
      return
    }
    const { untilMs, truncated, bodyError } = bodyEnd(plan, request, remainingMs())
    const share = plan.bodyDurationMs === 0 ? (truncated === 'none' ? 1 : 0.5) : untilMs / plan.bodyDurationMs
    timer = clock.setTimer(untilMs, () =>
      respond(plan, Math.floor(plan.body.length * Math.min(1, share)), truncated, bodyError),
    )
  }

  function respond(plan: ResponsePlan, bytes: number, cut: Truncation, bodyError: HttpError | null): void {
    const rawBody = bytes === plan.body.length ? plan.body : plan.body.subarray(0, bytes)
    const { body, over } = decode(plan, rawBody, request.maxBodyBytes)
    const truncated = cut === 'none' && over ? 'length' : cut
    finish(
      {
        kind: 'response',
        status: plan.status,
        statusText: STATUS_CODES[plan.status] ?? '',
        httpVersion: '1.1',
        headers: plan.headers,
        rawBody: body === rawBody || !over ? rawBody : rawBody.subarray(0, request.maxBodyBytes),
        body,
        truncated,
        bodyError,
        times: times(),
        requestHead: requestHead(request, url),
      },
      truncated === 'none',
    )
  }

  return () => {
    if (ended) return
    timer.cancel()
    // The server sees the connection close now; `done` is never called from within.
    if (entry !== null) entry.endMs ??= server.nowMs()
    timer = clock.setTimer(0, () => (entry === null ? finish({ kind: 'not-started' }) : fail('reset', 'cancelled')))
  }
}

/** When and why a body ends: at its end, at a deadline, for being slow, or because the server breaks off. */
function bodyEnd(
  plan: ResponsePlan,
  request: HttpRequest,
  remainingMs: number,
): { untilMs: number; truncated: Truncation; bodyError: HttpError | null } {
  const duration = plan.bodyDurationMs
  const breaks = plan.reset === 'mid-body' ? duration / 2 : Number.POSITIVE_INFINITY
  const tooSlow = duration > 10_000 && (plan.body.length / duration) * 1_000 < request.minBytesPerSec
  const slow = tooSlow ? 10_000 : Number.POSITIVE_INFINITY
  const total = duration > remainingMs ? remainingMs : Number.POSITIVE_INFINITY
  const untilMs = Math.min(duration, breaks, slow, total)
  if (untilMs === breaks) return { untilMs, truncated: 'disconnect', bodyError: 'reset' }
  if (untilMs === slow) return { untilMs, truncated: 'time', bodyError: 'body-timeout' }
  if (untilMs === total) return { untilMs, truncated: 'time', bodyError: 'total-timeout' }
  return { untilMs, truncated: 'none', bodyError: null }
}

function decode(plan: ResponsePlan, rawBody: Buffer, maxBodyBytes: number): { body: Buffer; over: boolean } {
  let body = rawBody
  if (plan.headers.some(([name, value]) => name === 'content-encoding' && value === 'gzip')) {
    // A cut gzip stream cannot be finished: nothing of it is given, as a decoder that holds its last block would.
    body = rawBody.length === plan.body.length ? gunzipSync(rawBody) : Buffer.alloc(0)
  }
  return body.length > maxBodyBytes ? { body: body.subarray(0, maxBodyBytes), over: true } : { body, over: false }
}

function requestHead(request: HttpRequest, url: URL): Buffer {
  let head = `GET ${url.pathname}${url.search} HTTP/1.1\r\nhost: ${url.host}\r\n`
  for (const [name, value] of request.headers) head += `${name}: ${value}\r\n`
  return Buffer.from(`${head}\r\n`, 'latin1')
}
