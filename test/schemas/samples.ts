import fc from 'fast-check'
import type {
  Candidate,
  Control,
  Decision,
  DiscoveredUrls,
  Fetched,
  HostPolicy,
  PageState,
  Parsed,
  Visit,
} from '../../schemas/types.ts'

/** Values of each topic as TypeScript has them. A field too many or too few here is an error of the compiler. */
export interface TopicValues {
  'discovered-urls': DiscoveredUrls
  canonicalized: Candidate
  unseen: Candidate
  'host-scheduled': Visit
  fetched: Fetched
  parsed: Parsed
  'page-states': PageState
  'host-policies': HostPolicy
  decisions: Decision
  controls: Control
}

const text = fc.string({ unit: 'binary', maxLength: 30 })
const nullable = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.option(value, { nil: null })
const int = fc.integer()
// Avro's zigzag form takes a bit more, so doubles are exact to 2^52 and no further.
const long = fc.oneof(
  fc.maxSafeInteger().map((n) => Math.trunc(n / 2) || 0),
  fc.constantFrom(2 ** 52, -(2 ** 52)),
)
const time = fc.integer({ min: 0, max: 4e15 })
const real = fc.double({ noNaN: true })
const flag = fc.boolean()
const fixed = (size: number): fc.Arbitrary<Uint8Array> => fc.uint8Array({ minLength: size, maxLength: size })
const bytes = fc.uint8Array({ maxLength: 200 })
const list = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T[]> => fc.array(value, { maxLength: 4 })
/** The compiler refuses a list that lacks a member of the union, as well as one too many. */
const words = <T extends string>(all: { [word in T]: true }): fc.Arbitrary<T> =>
  fc.constantFrom(...(Object.keys(all) as T[]))
const record = <T>(model: { [K in keyof T]-?: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> =>
  fc.record(model, { noNullPrototype: true }) as unknown as fc.Arbitrary<T>

const linkKind = words<Candidate['linkKind']>({
  anchor: true,
  frame: true,
  redirect: true,
  canonical: true,
  alternate: true,
  refresh: true,
  seed: true,
  alias: true,
})
const entryKind = words<Candidate['entryKind']>({ page: true, robots: true, sitemap: true, feed: true, probe: true })
const visitKind = words<Visit['visitKind']>({ resolve: true, robots: true, pages: true })

const candidate = record<Candidate>({
  fetchUrl: text,
  host: text,
  site: text,
  source: text,
  depth: int,
  hops: int,
  linkKind,
  entryKind,
  seedChain: flag,
  improved: flag,
})

export const samples: { [K in keyof TopicValues]: fc.Arbitrary<TopicValues[K]> } = {
  'discovered-urls': record<DiscoveredUrls>({
    sourceKind: words<DiscoveredUrls['sourceKind']>({ page: true, seed: true, api: true, sitemap: true, feed: true }),
    source: text,
    depth: int,
    hops: int,
    baseUrl: text,
    fetchId: text,
    cash: real,
    links: bytes,
    linkCount: int,
    excessCount: int,
  }),
  canonicalized: candidate,
  unseen: candidate,
  'host-scheduled': record<Visit>({
    leaseId: text,
    visitKind,
    host: text,
    site: text,
    address: nullable(text),
    gate: text,
    notBefore: time,
    deadline: time,
    delayMs: real,
    delayReason: text,
    lastEndedAt: nullable(time),
    robotsVersion: nullable(text),
    urls: list(
      record<Visit['urls'][number]>({
        key: text,
        fetchUrl: text,
        entryKind,
        depth: int,
        hops: int,
        attempt: int,
        seedChain: flag,
        etag: nullable(text),
        lastModified: nullable(text),
        payloadDigest: nullable(fixed(20)),
        lastFetchedAt: nullable(time),
      }),
    ),
  }),
  fetched: record<Fetched>({
    outcomeKind: words<Fetched['outcomeKind']>({ page: true, robots: true, dns: true, 'visit-end': true }),
    fetchId: text,
    leaseId: text,
    visitKind,
    index: int,
    attempt: int,
    entryKind,
    host: text,
    site: text,
    gate: text,
    url: text,
    depth: int,
    seedChain: flag,
    startedAt: time,
    endedAt: time,
    headersMs: real,
    status: int,
    error: words<Fetched['error']>({
      none: true,
      nxdomain: true,
      servfail: true,
      'dns-timeout': true,
      refused: true,
      unreachable: true,
      reset: true,
      tls: true,
      'connect-timeout': true,
      'headers-timeout': true,
      'body-timeout': true,
      'total-timeout': true,
      protocol: true,
      'address-refused': true,
      'address-changed': true,
      unknown: true,
    }),
    errorMessage: nullable(text),
    location: nullable(text),
    contentType: nullable(text),
    charset: nullable(text),
    rawBytes: long,
    bodyBytes: long,
    truncated: words<Fetched['truncated']>({ none: true, length: true, time: true, disconnect: true, type: true }),
    etag: nullable(text),
    lastModified: nullable(text),
    retryAfterMs: nullable(long),
    delayMs: real,
    delayReason: text,
    robotsVersion: nullable(text),
    address: nullable(text),
    archive: nullable(record<NonNullable<Fetched['archive']>>({ file: text, offset: long, length: long })),
    revisit: flag,
    payloadDigest: nullable(fixed(20)),
    parse: nullable(
      record<NonNullable<Fetched['parse']>>({
        contentHash: fixed(16),
        simhash: fixed(8),
        tokenCount: int,
        noindex: flag,
        nofollow: flag,
        canonicalUrl: nullable(text),
        linkCount: int,
      }),
    ),
    robotsBody: nullable(bytes),
    addresses: list(text),
    ttlMs: long,
    unstarted: list(text),
    reason: nullable(text),
  }),
  parsed: record<Parsed>({
    url: text,
    fetchId: text,
    fetchedAt: time,
    parseVersion: int,
    title: nullable(text),
    snippet: nullable(text),
    text: fc.string({ unit: 'binary', maxLength: 2_000 }),
    language: nullable(text),
    contentHash: fixed(16),
    simhash: fixed(8),
    simhash2: fixed(8),
    tokenCount: int,
    noindex: flag,
    nofollow: flag,
    canonicalUrl: nullable(text),
    linkCount: int,
    extracted: fc.dictionary(fc.oneof(text, fc.constantFrom('__proto__', 'constructor')), list(text), {
      noNullPrototype: true,
    }),
  }),
  'page-states': record<PageState>({
    sequence: long,
    state: words<PageState['state']>({ queued: true, leased: true, parked: true, known: true, gone: true }),
    reason: words<PageState['reason']>({
      none: true,
      robots: true,
      'robots-unreachable': true,
      dns: true,
      'back-off': true,
      budget: true,
      depth: true,
      trap: true,
      paused: true,
      ok: true,
      redirect: true,
      missing: true,
      forbidden: true,
      failed: true,
      refused: true,
    }),
    evidence: nullable(text),
    since: time,
    next: nullable(time),
    depth: int,
    importance: real,
    changeCount: int,
    lastCrawledAt: nullable(time),
    httpStatus: int,
    contentHash: nullable(fixed(16)),
    simhash: nullable(fixed(8)),
    duplicateOf: nullable(text),
    lastFetchId: nullable(text),
  }),
  'host-policies': record<HostPolicy>({
    site: text,
    address: nullable(text),
    gate: nullable(text),
    delayMs: real,
    delayReason: text,
    backOffUntil: nullable(time),
    backOffReason: nullable(text),
    origins: list(
      record<HostPolicy['origins'][number]>({
        origin: text,
        robotsVersion: text,
        verdict: words<HostPolicy['origins'][number]['verdict']>({
          rules: true,
          'allow-all': true,
          'disallow-all': true,
        }),
        httpStatus: int,
        fetchedAt: time,
        expiresAt: time,
        crawlDelayMs: nullable(real),
        rules: list(text),
      }),
    ),
  }),
  decisions: record<Decision>({
    processor: words<Decision['processor']>({ canonicalize: true, dedupe: true, schedule: true, parse: true }),
    fetchId: nullable(text),
    total: long,
    reasons: list(record<Decision['reasons'][number]>({ code: text, count: long, examples: list(text) })),
    evidence: nullable(text),
    at: time,
  }),
  controls: record<Control>({
    kind: words<Control['kind']>({ scope: true, 'scope-host': true }),
    mode: words<Control['mode']>({ host: true, domain: true, any: true }),
    host: nullable(text),
    site: nullable(text),
    ports: list(int),
    why: text,
    at: time,
  }),
}

/** Bytes come back as Buffers and go in as any Uint8Array: this makes both the same to a deep comparison. */
export function withBuffers(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value)
  if (Array.isArray(value)) return value.map(withBuffers)
  if (value !== null && typeof value === 'object') {
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, withBuffers(v)]))
  }
  return value
}
