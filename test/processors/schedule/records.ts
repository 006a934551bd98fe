import { originOf } from '../../../processors/schedule/admit.ts'
import type { Candidate, Fetched, VisitEntry } from '../../../schemas/types.ts'

export const second = 1000
export const minute = 60 * second
export const hour = 60 * minute
export const day = 24 * hour
export const startMs = Date.UTC(2026, 0, 5)

export function candidate(url: string, change: Partial<Candidate> = {}): Candidate {
  const host = new URL(originOf(url)).hostname
  return {
    fetchUrl: url,
    host,
    site: host.split('.').slice(-2).join('.'),
    source: 'seed:1',
    depth: 0,
    hops: 0,
    linkKind: 'seed',
    entryKind: 'page',
    seedChain: false,
    improved: false,
    ...change,
  }
}

export function outcome(change: Partial<Fetched> = {}): Fetched {
  return {
    outcomeKind: 'page',
    fetchId: 'x-1.0.0.0',
    leaseId: 'x-1',
    visitKind: 'pages',
    index: 0,
    attempt: 0,
    entryKind: 'page',
    host: 'a.test',
    site: 'a.test',
    gate: 'a:192.0.2.1',
    url: 'http://a.test/',
    depth: 0,
    seedChain: false,
    startedAt: startMs,
    endedAt: startMs + 100,
    headersMs: 50,
    status: 200,
    error: 'none',
    errorMessage: null,
    location: null,
    contentType: 'text/html',
    charset: 'utf-8',
    rawBytes: 100,
    bodyBytes: 100,
    truncated: 'none',
    etag: null,
    lastModified: null,
    retryAfterMs: null,
    delayMs: 0,
    delayReason: 'minimum',
    robotsVersion: null,
    address: '192.0.2.1',
    archive: null,
    revisit: false,
    payloadDigest: null,
    parse: null,
    robotsBody: null,
    addresses: [],
    ttlMs: 0,
    unstarted: [],
    reason: null,
    ...change,
  }
}

export type Reply = Partial<Fetched> & { readonly durationMs?: number }
export type Web = {
  /** What a page gives; `number` = the how-manieth request of this URL, from 1. */
  page?(url: string, number: number, entry: VisitEntry): Reply | 'not-started' | 'silent'
  robots?(url: string, number: number): Reply | 'not-started' | 'silent'
  dns?(host: string, number: number): Reply | 'silent'
}
