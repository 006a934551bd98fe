import { gzipSync } from 'node:zlib'
import type { UrlFault } from './faults.ts'
import { renderPage } from './html.ts'
import type { WebModel, WebState } from './model.ts'
import { createRandom, hash32 } from './random.ts'
import type { Site, SitePage } from './site.ts'

export interface WebRequestHead {
  readonly method: string
  /** Without a port, lower case. */
  readonly host: string
  /** Path and query. */
  readonly path: string
  /** Value of a request header by its lower-case name. */
  header(name: string): string | undefined
  /** Wall clock. */
  readonly nowMs: number
}

/** What a server does with one request. */
export interface ResponsePlan {
  readonly status: number
  readonly headers: readonly (readonly [string, string])[]
  readonly body: Buffer
  readonly delayBeforeHeadersMs: number
  /** The body arrives evenly over this time. */
  readonly bodyDurationMs: number
  /** The connection is reset instead of the head, or after half of the body. */
  readonly reset: 'before-headers' | 'mid-body' | null
  /** Of Retry-After in either form, counted from the head; null = no such header. */
  readonly retryAfterMs: number | null
}

export function respond(model: WebModel, request: WebRequestHead, state: WebState): ResponsePlan {
  const site = model.site(request.host)
  const { nowMs } = request
  if (site === undefined) return plain(421, 'Misdirected Request\n', nowMs, 0)
  const key = `${request.host} ${request.path}`
  const attempt = (state.requests.get(key) ?? 0) + 1
  state.requests.set(key, attempt)
  const delayMs = site.latencyMs * createRandom('latency', key, attempt).between(0.5, 1.5)
  if (request.method !== 'GET' && request.method !== 'HEAD') return plain(405, 'Method Not Allowed\n', nowMs, delayMs)

  const isRobots = request.path === '/robots.txt' || request.path === site.robots.path
  const page = site.pages.get(request.path)
  const fault = isRobots ? site.faults.robots : (page?.fault ?? null)
  if (fault?.kind === 'status' && attempt <= fault.times) return failing(fault, nowMs, delayMs)
  const plan = isRobots
    ? robotsPlan(site, request, delayMs)
    : page === undefined
      ? plain(404, 'Not Found\n', nowMs, delayMs)
      : pagePlan(model, site, page, request, state, delayMs)
  return fault === null ? plan : spoil(plan, fault, attempt)
}

function robotsPlan(site: Site, request: WebRequestHead, delayMs: number): ResponsePlan {
  const { robots } = site
  if (request.path !== robots.path) {
    return plain(301, 'Moved\n', request.nowMs, delayMs, [['location', `${site.origin}${robots.path}`]])
  }
  return plain(robots.status, robots.body, request.nowMs, delayMs)
}

function pagePlan(
  model: WebModel,
  site: Site,
  page: SitePage,
  request: WebRequestHead,
  state: WebState,
  delayMs: number,
): ResponsePlan {
  const { nowMs } = request
  const { seed, pageBytes } = model.options
  if (page.redirect !== null) {
    const { to, absolute } = page.redirect
    return plain(page.status, 'Moved\n', nowMs, delayMs, [['location', absolute ? site.origin + to : to]])
  }
  if (page.kind === 'missing') {
    const body = '<!DOCTYPE html><title>Not found</title><h1>Not found</h1><p>Nothing here. <a href="/">Home</a></p>\n'
    return plain(page.status, body, nowMs, delayMs, [['content-type', 'text/html; charset=utf-8']])
  }
  const version = editionOf(model, site, page, nowMs, state)
  const etag = `"${hash32(`${seed} ${site.host} ${page.path}`).toString(16)}-${version}"`
  const headers: [string, string][] = [['etag', etag]]
  if (request.header('if-none-match') === etag) return plain(304, '', nowMs, delayMs, headers)

  let body: Buffer
  if (page.kind === 'file') {
    body = Buffer.alloc(2_048, page.path)
    headers.push(['content-type', 'application/zip'])
  } else {
    const html = renderPage(site, page, seed, pageBytes, version)
    body = Buffer.from(html, site.charset === 'utf-8' ? 'utf8' : 'latin1')
    headers.push(['content-type', `text/html; charset=${site.charset}`])
  }
  if (site.gzip && /\bgzip\b/.test(request.header('accept-encoding') ?? '')) {
    body = gzipSync(body, { level: 1 })
    headers.push(['content-encoding', 'gzip'], ['vary', 'Accept-Encoding'])
  }
  return {
    ...plain(200, body, nowMs, delayMs, headers),
    bodyDurationMs: (body.length / site.bytesPerSec) * 1_000,
  }
}

/** How often the page has changed since the web began. */
function editionOf(model: WebModel, site: Site, page: SitePage, nowMs: number, state: WebState): number {
  const interval = model.options.changeIntervalMs ?? null
  const phase = hash32(`${site.host} ${page.textOf}`)
  if (interval === null || phase % 2 === 0) return 0
  return Math.max(0, Math.floor((nowMs - state.startMs) / interval + (phase % 1_000) / 1_000))
}

function failing(fault: UrlFault & { kind: 'status' }, nowMs: number, delayMs: number): ResponsePlan {
  const headers: [string, string][] = [['content-type', 'text/html']]
  let retryAfterMs: number | null = null
  if (fault.retryAfterSec !== null) {
    const atMs = nowMs + delayMs + fault.retryAfterSec * 1_000
    const asDate = fault.form === 'date'
    headers.push(['retry-after', asDate ? new Date(atMs).toUTCString() : String(fault.retryAfterSec)])
    // A date has whole seconds: what the header says, not what was meant.
    retryAfterMs = asDate ? Math.floor(atMs / 1_000) * 1_000 - (nowMs + delayMs) : fault.retryAfterSec * 1_000
  }
  const plan = plain(fault.status, `<title>${fault.status}</title><h1>Try again later</h1>\n`, nowMs, delayMs, headers)
  return { ...plan, retryAfterMs }
}

function spoil(plan: ResponsePlan, fault: UrlFault, attempt: number): ResponsePlan {
  switch (fault.kind) {
    case 'status':
      return plan
    case 'slow-headers':
      return { ...plan, delayBeforeHeadersMs: fault.ms }
    case 'slow-body':
      return { ...plan, bodyDurationMs: fault.ms }
    case 'drip':
      return attempt <= fault.times ? { ...plan, bodyDurationMs: 300_000 } : plan
    case 'reset':
      return attempt <= fault.times ? { ...plan, reset: fault.when } : plan
  }
}

function plain(
  status: number,
  body: string | Buffer,
  nowMs: number,
  delayBeforeHeadersMs: number,
  headers: readonly (readonly [string, string])[] = [],
): ResponsePlan {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  const typed = headers.some(([name]) => name === 'content-type')
  return {
    status,
    headers: [
      ['date', new Date(nowMs).toUTCString()],
      ['server', 'simulated'],
      ...(typed || status === 304 ? [] : ([['content-type', 'text/plain; charset=utf-8']] as const)),
      ...headers,
      ...(status === 304 ? [] : ([['content-length', String(bytes.length)]] as const)),
    ],
    body: bytes,
    delayBeforeHeadersMs,
    bodyDurationMs: 0,
    reset: null,
    retryAfterMs: null,
  }
}
