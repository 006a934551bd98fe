import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createVirtualClock } from '../../connectors/clock/virtual.ts'
import type { HttpOutcome } from '../../connectors/http/types.ts'
import { pageLinks } from '../integration/support/links.ts'
import { createSimulatedWeb, type SimulatedWeb } from './in-process.ts'
import { faultsOf, judge, type WebRequest } from './log.ts'
import { createWebModel, type WebModel } from './model.ts'

const startMs = Date.UTC(2026, 0, 1)
const minDelayMs = 1_000
const model = createWebModel({
  seed: 21,
  hosts: 40,
  pagesPerHost: 25,
  pageBytes: 2_000,
  faults: true,
  hostsPerSite: 2,
  addresses: ['127.0.0.1', '127.0.0.2', '127.0.0.3'],
})

test('a patient and polite crawler gets every page of a faulty web once, and the judge has no complaint', () => {
  const { log, finished } = crawl(model, minDelayMs)
  const verdict = judge(log, model, { minDelayMs })
  assert.deepEqual(faultsOf(verdict), [])
  assert.equal(verdict.pagesOnce, model.allowedPages().size)
  assert.ok(finished)
  assert.ok(log.some((entry) => entry.status === 503) && log.some((entry) => entry.status === 0))
  assert.deepEqual(log, crawl(model, minDelayMs).log, 'and the same again')
})

test('a hasty crawler is caught', () => {
  const { log } = crawl(model, 400)
  const verdict = judge(log, model, { minDelayMs })
  assert.ok(verdict.shortGaps.length > verdict.requests / 2)
  assert.deepEqual(verdict.overlaps, [])
})

/** The least that can be called a crawler: for each host one request at a time, again after a failure. */
function crawl(web: WebModel, delayMs: number): { log: readonly WebRequest[]; finished: boolean } {
  const clock = createVirtualClock(startMs)
  const simulated = createSimulatedWeb(web, clock)
  const forbidden = web.disallowedPages()
  const seen = new Set<string>()
  const queues = new Map<string, string[]>()
  const add = (url: string): void => {
    const host = new URL(url).hostname
    if (seen.has(url) || forbidden.has(url) || !web.hosts.includes(host)) return
    seen.add(url)
    const queue = queues.get(host)
    if (queue !== undefined) queue.push(url)
    else {
      queues.set(host, [url])
      visitHost(host)
    }
  }

  function visitHost(host: string): void {
    const queue = queues.get(host)!
    let robotsUrl: string | null = web.urlOf(host, '/robots.txt')
    let crawlDelayMs = 0
    const next = (waitMs: number): void => {
      clock.setTimer(waitMs, () => {
        const url = robotsUrl ?? queue[0]
        if (url === undefined) next(5_000)
        else resolveAndFetch(simulated, url, (outcome) => next(settle(url, outcome)))
      })
    }
    /** How long the host is then left alone. */
    const settle = (url: string, outcome: HttpOutcome | null): number => {
      if (outcome?.kind !== 'response' || outcome.truncated !== 'none') return 60_000
      const header = (name: string): string | undefined => outcome.headers.find(([n]) => n === name)?.[1]
      const { status } = outcome
      if (status === 429 || status >= 500) return Math.max(60_000, waitOf(header('retry-after'), clock.nowMs()))
      const location = status >= 300 && status < 400 ? new URL(header('location') ?? '', url).href : null
      if (url === robotsUrl) {
        robotsUrl = location
        crawlDelayMs = 1_000 * Number(/^crawl-delay: (\S+)/im.exec(String(outcome.body))?.[1] ?? 0)
      } else {
        queue.shift()
        if (location !== null) add(location)
        if (status === 200 && header('content-type')?.startsWith('text/html')) {
          const encoding = header('content-type')?.includes('8859') ? 'latin1' : 'utf8'
          for (const link of pageLinks(outcome.body.toString(encoding), url)) add(link)
        }
      }
      return Math.max(delayMs, crawlDelayMs)
    }
    next(0)
  }

  for (const seed of web.seeds()) add(seed)
  clock.advanceTo(4 * 3_600_000)
  return { log: simulated.log, finished: [...queues.values()].every((queue) => queue.length === 0) }
}

/** Null when the name does not resolve. */
function resolveAndFetch(web: SimulatedWeb, url: string, done: (outcome: HttpOutcome | null) => void): void {
  web.resolver.resolve(new URL(url).hostname, (answer) => {
    if (answer.kind === 'error') {
      done(null)
      return
    }
    const request = {
      url,
      address: answer.addresses[0] ?? '',
      headers: [],
      maxBodyBytes: 1_000_000,
      connectTimeoutMs: 10_000,
      headersTimeoutMs: 30_000,
      totalTimeoutMs: 60_000,
      minBytesPerSec: 0,
      accepts: () => true,
      mayStart: () => true,
    }
    web.http.request(request, done)
  })
}

function waitOf(retryAfter: string | undefined, nowMs: number): number {
  if (retryAfter === undefined) return 0
  return /^\d+$/.test(retryAfter) ? Number(retryAfter) * 1_000 : Date.parse(retryAfter) - nowMs
}
