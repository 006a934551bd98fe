import { createHash } from 'node:crypto'
import type { Archive, ArchiveExchange } from '../../../connectors/archive/types.ts'
import type { Clock } from '../../../connectors/clock/types.ts'
import { createVirtualClock, type VirtualClock } from '../../../connectors/clock/virtual.ts'
import type { DnsResult, Resolver } from '../../../connectors/dns/types.ts'
import type { HttpClient, HttpOutcome, HttpRequest } from '../../../connectors/http/types.ts'
import { createFetch } from '../../../processors/fetch/fetch.ts'
import type { FetchOptions, FetchOutput } from '../../../processors/fetch/types.ts'
import type { PageInput, ParsedPage } from '../../../processors/parse/page.ts'
import type { Decision, DiscoveredUrls, Fetched, Parsed, Visit, VisitEntry } from '../../../schemas/types.ts'
import type { Processor, ProcessorContext } from '../../../topology/streams/types.ts'

export const startMs = Date.parse('2026-01-01T00:00:00Z')

type Response = Extract<HttpOutcome, { kind: 'response' }>
type Failure = Extract<HttpOutcome, { kind: 'error' }>
export type Answer =
  | ({
      readonly kind: 'response'
      readonly connectMs?: number
      readonly takesMs?: number
    } & Partial<Response>)
  | {
      readonly kind: 'error'
      readonly connectMs?: number
      readonly takesMs?: number
      readonly error: Failure['error']
    }

export interface Started {
  readonly url: string
  readonly address: string
  readonly headers: ReadonlyMap<string, string>
  readonly atMs: number
  endedAtMs: number
}

export const html = (body: string, more: Partial<Response> = {}): Answer => ({
  kind: 'response',
  headers: [['Content-Type', 'text/html; charset=utf-8']],
  body: Buffer.from(body),
  ...more,
})
export const answer = (status: number, headers: Response['headers'] = [], body = ''): Answer => ({
  kind: 'response',
  status,
  headers,
  body: Buffer.from(body),
})

/** An HttpClient under a virtual clock: connects, asks mayStart, answers as scripted. */
export function scriptedHttp(clock: VirtualClock, script: (url: string, nth: number) => Answer) {
  const started: Started[] = []
  const asked: HttpRequest[] = []
  const open = new Set<string>()
  const client: HttpClient = {
    request(request, done) {
      const answer = script(request.url, asked.length)
      asked.push(request)
      let live = true
      const later = (ms: number, step: () => void) => clock.setTimer(ms, () => live && step())
      later(answer.connectMs ?? 0, () => {
        if (answer.kind === 'error' && answer.takesMs === undefined) {
          done(failure(answer.error, clock))
          return
        }
        if (!request.mayStart()) {
          done({ kind: 'not-started' })
          return
        }
        const { hostname } = new URL(request.url)
        if (open.has(hostname)) throw new Error(`two requests to ${hostname} at once`)
        open.add(hostname)
        const begun = {
          wallMs: clock.nowMs(),
          monotonicMs: clock.monotonicMs(),
        }
        const entry: Started = {
          url: request.url,
          address: request.address,
          headers: new Map(request.headers),
          atMs: begun.monotonicMs,
          endedAtMs: 0,
        }
        started.push(entry)
        later(answer.takesMs ?? 10, () => {
          open.delete(hostname)
          entry.endedAtMs = clock.monotonicMs()
          done(outcomeOf(request, answer, begun, clock))
        })
      })
      return {
        cancel() {
          live = false
        },
      }
    },
    async close() {},
  }
  return { client, started, asked }
}

function outcomeOf(
  request: HttpRequest,
  answer: Answer,
  begun: { wallMs: number; monotonicMs: number },
  clock: VirtualClock,
): HttpOutcome {
  const times = {
    startedAtMs: begun.wallMs,
    endedAtMs: clock.nowMs(),
    startedMonotonicMs: begun.monotonicMs,
    endedMonotonicMs: clock.monotonicMs(),
    headersMs: 5,
  }
  if (answer.kind === 'error') {
    return {
      kind: 'error',
      error: answer.error,
      message: 'scripted',
      written: true,
      times,
    }
  }
  const body = answer.body ?? Buffer.alloc(0)
  return {
    kind: 'response',
    status: answer.status ?? 200,
    statusText: answer.statusText ?? '',
    httpVersion: '1.1',
    headers: answer.headers ?? [],
    rawBody: answer.rawBody ?? body,
    body,
    truncated: answer.truncated ?? 'none',
    bodyError: answer.bodyError ?? null,
    times,
    requestHead: Buffer.from(`GET ${request.url}\r\n\r\n`),
  }
}

function failure(error: Failure['error'], clock: VirtualClock): HttpOutcome {
  const times = {
    startedAtMs: 0,
    endedAtMs: clock.nowMs(),
    startedMonotonicMs: 0,
    endedMonotonicMs: clock.monotonicMs(),
    headersMs: 0,
  }
  return { kind: 'error', error, message: 'scripted', written: false, times }
}

export function recordingArchive() {
  const exchanges: ArchiveExchange[] = []
  let syncs = 0
  const archive: Archive = {
    append(exchange) {
      exchanges.push(exchange)
      return {
        file: 'test.warc.gz',
        offset: exchanges.length * 100,
        length: 100,
      }
    },
    sync() {
      syncs++
    },
    read: () => Promise.reject(new Error('not in these tests')),
    async close() {},
  }
  return { archive, exchanges, syncs: () => syncs }
}

export function scriptedResolver(clock: VirtualClock, script: (host: string) => DnsResult): Resolver {
  return {
    resolve: (host, done) => void clock.setTimer(5, () => done(script(host))),
    close() {},
  }
}

/** A parser that finds `href=x` and no more. */
export function toyParse(input: PageInput): ParsedPage | null {
  if (!input.contentType?.startsWith('text/html')) return null
  const text = input.body.toString()
  if (text.includes('broken')) throw new Error('cannot parse that')
  const hrefs = [...text.matchAll(/href=(\S+)/g)].map((match) => match[1]!)
  return {
    baseUrl: input.url,
    title: 'title',
    snippet: null,
    text,
    language: null,
    charset: 'utf-8',
    links: Buffer.from(hrefs.join(' ')),
    linkCount: hrefs.length,
    excessCount: 0,
    directives: { noindex: false, nofollow: text.includes('nofollow'), noarchive: false },
    canonicalUrl: null,
    contentHash: Buffer.alloc(16, 1),
    simhash: Buffer.alloc(8, 2),
    simhash2: Buffer.alloc(8, 3),
    tokenCount: 3,
  }
}

export function entryOf(path: string, changes: Partial<VisitEntry> = {}): VisitEntry {
  const url = path.startsWith('http') ? path : `http://a.example${path}`
  return {
    key: url,
    fetchUrl: url,
    entryKind: 'page',
    depth: 2,
    hops: 0,
    attempt: 0,
    seedChain: false,
    etag: null,
    lastModified: null,
    payloadDigest: null,
    lastFetchedAt: null,
    ...changes,
  }
}

export function visitOf(urls: VisitEntry[], changes: Partial<Visit> = {}): Visit {
  return {
    leaseId: '0123456789abcdef-7',
    visitKind: 'pages',
    host: 'a.example',
    site: 'a.example',
    address: '198.51.100.7',
    gate: 'a:198.51.100.7',
    notBefore: startMs,
    deadline: startMs + 100_000,
    delayMs: 1000,
    delayReason: 'minimum',
    lastEndedAt: null,
    robotsVersion: 'none',
    urls,
    ...changes,
  }
}

export type Out =
  | { child: 'fetched'; key: string; value: Fetched }
  | { child: 'discovered-urls'; key: string; value: DiscoveredUrls }
  | { child: 'parsed'; key: string; value: Parsed }
  | { child: 'decisions'; key: string; value: Decision }

/** One task of fetch without a runtime: takes start at once, completions are collected. */
export function openTask(clock: Clock, options: FetchOptions) {
  const out: Out[] = []
  /** Children forwarded to in each completion. */
  const completions: string[][] = []
  const queues = new Map<string, ((done: () => void) => void)[]>()
  let inFlight = 0
  const run = (key: string): void => {
    const queue = queues.get(key)!
    queue[0]!(() => {
      inFlight--
      queue.shift()
      if (queue.length === 0) queues.delete(key)
      else run(key)
    })
  }
  const context = {
    applicationId: 'test-fetch',
    taskId: '0_0',
    partition: 0,
    partitions: 1,
    clock,
    forward({ key, value }: { key: string; value: FetchOutput }, child: string) {
      completions.at(-1)!.push(child)
      out.push({ child, key, value } as Out)
    },
    async: {
      take(key: string, start: (done: () => void) => void) {
        inFlight++
        const queue = queues.get(key)
        if (queue !== undefined) {
          queue.push(start)
          return
        }
        queues.set(key, [start])
        run(key)
      },
      complete(event: () => void, acked?: () => void) {
        completions.push([])
        event()
        acked?.()
      },
      inFlight: () => inFlight,
    },
  } as unknown as ProcessorContext<string, FetchOutput>
  const processor: Processor<string, Visit> = createFetch(options)(context)
  return {
    out,
    completions,
    processor,
    inFlight: () => inFlight,
    take(visit: Visit | null, key = visit?.host ?? 'a.example') {
      processor.process({ key, value: visit, timestamp: clock.nowMs() })
    },
    fetched: () => out.filter((o) => o.child === 'fetched').map(({ key, value }) => ({ key, ...(value as Fetched) })),
    of<C extends Out['child']>(child: C) {
      return out.filter((o): o is Extract<Out, { child: C }> => o.child === child)
    },
  }
}

/** A task under a virtual clock, with everything scripted. */
export function openFetch(
  script: (url: string, nth: number) => Answer,
  options: Partial<FetchOptions> & { resolve?: (host: string) => DnsResult } = {},
) {
  const clock = createVirtualClock(startMs)
  const http = scriptedHttp(clock, script)
  const archive = recordingArchive()
  const { resolve, ...rest } = options
  const task = openTask(clock, {
    http: http.client,
    resolver: scriptedResolver(clock, resolve ?? (() => ({ kind: 'error', error: 'servfail', message: '' }))),
    archive: archive.archive,
    parse: toyParse,
    userAgent: 'weir-test/1 (+https://example.org/)',
    agentToken: 'weir-test',
    ...rest,
  })
  return {
    ...task,
    clock,
    http,
    archive,
    /** Lets time pass until nothing is due any more. */
    settle() {
      for (let next = clock.nextTimerMs(); next !== undefined; next = clock.nextTimerMs()) clock.advanceTo(next)
    },
  }
}

export const sha1 = (bytes: string | Buffer): Buffer => createHash('sha1').update(bytes).digest()
