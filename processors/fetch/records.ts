import { createHash } from 'node:crypto'
import type { ArchiveExchange, ArchiveRef } from '../../connectors/archive/types.ts'
import type { HttpOutcome } from '../../connectors/http/types.ts'
import { createLinksWriter } from '../../schemas/links.ts'
import {
  type Decision,
  type DiscoveredUrls,
  type Fetched,
  linkFlags,
  type Parsed,
  type Visit,
  type VisitEntry,
} from '../../schemas/types.ts'
import type { ParsedPage } from '../parse/page.ts'
import { contentTypeOf, type HeaderPairs, responseHead, retryAfterMs, validator } from './headers.ts'

export type HttpResponse = Extract<HttpOutcome, { kind: 'response' }>
export type HttpFailed = Extract<HttpOutcome, { kind: 'error' }>

/** One request of a visit: which entry, where it went, which hop of a robots redirect it was. */
export interface Asked {
  readonly visit: Visit
  readonly index: number
  readonly hop: number
  readonly url: string
}

const maxMessageLength = 300

export function fetchIdOf({ visit, index, hop }: Asked): string {
  return `${visit.leaseId}.${index}.${visit.urls[index]?.attempt ?? 0}.${hop}`
}

/** A record with everything that the visit knows, and nothing of what came of it. */
export function fetchedBase(asked: Asked): Fetched {
  const { visit, index, url } = asked
  const entry = visit.urls[index]
  return {
    outcomeKind: 'page',
    fetchId: fetchIdOf(asked),
    leaseId: visit.leaseId,
    visitKind: visit.visitKind,
    index,
    attempt: entry?.attempt ?? 0,
    entryKind: entry?.entryKind ?? 'page',
    host: visit.host,
    site: visit.site,
    gate: visit.gate,
    url,
    depth: entry?.depth ?? 0,
    seedChain: entry?.seedChain ?? false,
    startedAt: 0,
    endedAt: 0,
    headersMs: 0,
    status: 0,
    error: 'none',
    errorMessage: null,
    location: null,
    contentType: null,
    charset: null,
    rawBytes: 0,
    bodyBytes: 0,
    truncated: 'none',
    etag: null,
    lastModified: null,
    retryAfterMs: null,
    delayMs: visit.delayMs,
    delayReason: visit.delayReason,
    robotsVersion: visit.robotsVersion,
    address: visit.address,
    archive: null,
    revisit: false,
    payloadDigest: null,
    parse: null,
    robotsBody: null,
    addresses: [],
    ttlMs: 0,
    unstarted: [],
    reason: null,
  }
}

export function failedFetched(asked: Asked, outcome: HttpFailed): Fetched {
  return {
    ...fetchedBase(asked),
    startedAt: Math.round(outcome.times.startedAtMs),
    endedAt: Math.round(outcome.times.endedAtMs),
    error: outcome.error,
    errorMessage: outcome.message.slice(0, maxMessageLength),
  }
}

export function answeredFetched(
  asked: Asked,
  response: HttpResponse,
  made: {
    readonly archive: ArchiveRef
    readonly exchange: ArchiveExchange
    readonly page: ParsedPage | null
    readonly location: string | null
  },
): Fetched {
  const { status, headers, times, bodyError } = response
  const { type, charset } = contentTypeOf(headers)
  return {
    ...fetchedBase(asked),
    startedAt: Math.round(times.startedAtMs),
    endedAt: Math.round(times.endedAtMs),
    headersMs: times.headersMs,
    status,
    // With a status: the head came, the body did not come whole.
    error: bodyError ?? 'none',
    errorMessage: bodyError === null ? null : `reading the body: ${bodyError}`,
    location: made.location,
    contentType: type,
    charset: made.page?.charset ?? charset,
    rawBytes: response.rawBody.length,
    bodyBytes: response.body.length,
    truncated: response.truncated,
    etag: validator(headers, 'etag'),
    lastModified: validator(headers, 'last-modified'),
    retryAfterMs: status === 429 || status === 503 ? retryAfterMs(headers, times.endedAtMs) : null,
    archive: {
      file: made.archive.file,
      offset: made.archive.offset,
      length: made.archive.length,
    },
    revisit: made.exchange.revisit !== null,
    payloadDigest: made.exchange.payloadDigest,
    parse: made.page === null ? null : summaryOf(made.page),
  }
}

function summaryOf(page: ParsedPage): NonNullable<Fetched['parse']> {
  return {
    contentHash: page.contentHash,
    simhash: page.simhash,
    tokenCount: page.tokenCount,
    noindex: page.directives.noindex,
    nofollow: page.directives.nofollow,
    canonicalUrl: page.canonicalUrl,
    linkCount: page.linkCount,
  }
}

/** What goes to the archive; a revisit if the content is the version that the entry knows already. */
export function exchangeOf(asked: Asked, response: HttpResponse): ArchiveExchange {
  const entry = asked.visit.urls[asked.index]!
  const digest = createHash('sha1').update(response.rawBody).digest()
  const profile = revisitProfile(entry, response, digest)
  return {
    url: asked.url,
    address: asked.visit.address ?? '',
    startedAtMs: Math.round(response.times.startedAtMs),
    requestHead: response.requestHead,
    responseHead: responseHead(response),
    rawBody: response.rawBody,
    truncated:
      response.truncated === 'none' ? null : response.truncated === 'type' ? 'unspecified' : response.truncated,
    // A 304 stands for the payload that it confirms.
    payloadDigest: profile === 'server-not-modified' ? (entry.payloadDigest ?? digest) : digest,
    revisit:
      profile === null
        ? null
        : {
            profile,
            refersToUrl: entry.fetchUrl,
            refersToDateMs: entry.lastFetchedAt ?? 0,
          },
  }
}

type RevisitProfile = NonNullable<ArchiveExchange['revisit']>['profile']

function revisitProfile(entry: VisitEntry, response: HttpResponse, digest: Buffer): RevisitProfile | null {
  if (entry.lastFetchedAt === null) return null
  if (response.status === 304) return 'server-not-modified'
  const same =
    response.status === 200 &&
    response.truncated === 'none' &&
    entry.payloadDigest !== null &&
    digest.equals(entry.payloadDigest)
  return same ? 'identical-payload-digest' : null
}

export function pageLinks(asked: Asked, page: ParsedPage): DiscoveredUrls {
  const entry = asked.visit.urls[asked.index]!
  return {
    sourceKind: 'page',
    source: entry.key,
    depth: entry.depth + 1,
    hops: 0,
    baseUrl: page.baseUrl,
    fetchId: fetchIdOf(asked),
    cash: 0,
    links: page.links,
    linkCount: page.linkCount,
    excessCount: page.excessCount,
  }
}

export function redirectLink(asked: Asked, target: string): DiscoveredUrls {
  const entry = asked.visit.urls[asked.index]!
  const writer = createLinksWriter()
  writer.add('redirect', entry.seedChain ? linkFlags.seedChain : 0, target)
  return {
    sourceKind: 'page',
    source: entry.key,
    // A redirect is no click: its target is as deep as what redirected.
    depth: entry.depth,
    hops: entry.hops + 1,
    baseUrl: asked.url,
    fetchId: fetchIdOf(asked),
    cash: 0,
    links: writer.bytes(),
    linkCount: writer.count,
    excessCount: writer.excessCount,
  }
}

/** What `parsed` says of a page. */
export function parsedOf(
  from: Pick<Parsed, 'url' | 'fetchId' | 'fetchedAt' | 'parseVersion' | 'extracted'>,
  page: ParsedPage,
): Parsed {
  return {
    url: from.url,
    fetchId: from.fetchId,
    fetchedAt: from.fetchedAt,
    parseVersion: from.parseVersion,
    title: page.title,
    snippet: page.snippet,
    text: page.text,
    language: page.language,
    contentHash: page.contentHash,
    simhash: page.simhash,
    simhash2: page.simhash2,
    tokenCount: page.tokenCount,
    noindex: page.directives.noindex,
    nofollow: page.directives.nofollow,
    canonicalUrl: page.canonicalUrl,
    linkCount: page.linkCount,
    extracted: from.extracted,
  }
}

export function decisionOf(asked: Asked, code: string, evidence: string, at: number): Decision {
  return {
    processor: 'parse',
    fetchId: fetchIdOf(asked),
    total: 1,
    reasons: [{ code, count: 1, examples: [asked.url] }],
    evidence: evidence.slice(0, maxMessageLength),
    at: Math.round(at),
  }
}

export function setsCookie(headers: HeaderPairs): boolean {
  return headers.some(([name]) => name.toLowerCase() === 'set-cookie')
}
