/**
 * The values of the topics, as TypeScript sees them. Each equals its `.avsc` (a test holds them together).
 * Times are milliseconds since the epoch; hashes are bytes; null = not known.
 */

/** Links as found, in one bytes blob: repeated {u8 linkKind, u8 flags, varint length, UTF-8} (schemas/links.ts). */
export type LinkKind = 'anchor' | 'frame' | 'redirect' | 'canonical' | 'alternate' | 'refresh' | 'seed' | 'alias'
export const linkKinds: readonly LinkKind[] = [
  'anchor',
  'frame',
  'redirect',
  'canonical',
  'alternate',
  'refresh',
  'seed',
  'alias',
]
/** Flag bits of a link. `seedChain`: a redirect that started at a seed. */
export const linkFlags = { nofollow: 1, seedChain: 2 } as const

export type SourceKind = 'page' | 'seed' | 'api' | 'sitemap' | 'feed'
export type EntryKind = 'page' | 'robots' | 'sitemap' | 'feed' | 'probe'
export type VisitKind = 'resolve' | 'robots' | 'pages'
export type OutcomeKind = 'page' | 'robots' | 'dns' | 'visit-end'

/** `discovered-urls`, key = source: a page's URL, or `seed:<id>`. */
export interface DiscoveredUrls {
  sourceKind: SourceKind
  source: string
  /** Depth that the links get: a seed's 0, a page's links its own + 1, a redirect target the depth of what redirected. */
  depth: number
  /** Redirects in a row that led here; 0 for the links of a page. */
  hops: number
  /** What relative links resolve against. */
  baseUrl: string
  fetchId: string
  cash: number
  links: Uint8Array
  linkCount: number
  /** Links over the bound (5,000 or 256 KiB), left out. */
  excessCount: number
}

/** `canonicalized` and `unseen`, key = canonical URL. */
export interface Candidate {
  /** First spelling seen, without fragment, tracking and session parameters. */
  fetchUrl: string
  host: string
  site: string
  source: string
  depth: number
  /** Redirects in a row that led to it. */
  hops: number
  linkKind: LinkKind
  entryKind: EntryKind
  /** The link is, or descends by redirects from, a seed. */
  seedChain: boolean
  /** `unseen` only: seen before, at a greater depth. */
  improved: boolean
}

export interface VisitEntry {
  key: string
  fetchUrl: string
  entryKind: EntryKind
  depth: number
  hops: number
  attempt: number
  seedChain: boolean
  etag: string | null
  lastModified: string | null
  payloadDigest: Uint8Array | null
  /** Of the version that validators and digest are of. */
  lastFetchedAt: number | null
}

/** `host-scheduled`, key = host; the value is the host's current visit, a tombstone when idle. */
export interface Visit {
  leaseId: string
  visitKind: VisitKind
  host: string
  site: string
  /** Null for `resolve`. */
  address: string | null
  /** `a:203.0.113.7`, `a6:2001:db8::/64`; for `resolve` `h:<host>`. */
  gate: string
  notBefore: number
  deadline: number
  delayMs: number
  delayReason: string
  /** When the host's last response ended; null = no request was ever made there. */
  lastEndedAt: number | null
  robotsVersion: string | null
  /** `resolve`: empty. `robots`: one entry an origin, fetchUrl = its /robots.txt. */
  urls: VisitEntry[]
}

export type Truncation = 'none' | 'length' | 'time' | 'disconnect' | 'type'
/** `none` = a response came. Others: no complete response head, or (body-*) none complete. */
export type FetchError =
  | 'none'
  | 'nxdomain'
  | 'servfail'
  | 'dns-timeout'
  | 'refused'
  | 'unreachable'
  | 'reset'
  | 'tls'
  | 'connect-timeout'
  | 'headers-timeout'
  | 'body-timeout'
  | 'total-timeout'
  | 'protocol'
  | 'address-refused'
  | 'address-changed'
  | 'unknown'

export interface ArchivePointer {
  file: string
  offset: number
  length: number
}

export interface ParseSummary {
  contentHash: Uint8Array
  /** SimHash F1, 8 bytes big-endian. */
  simhash: Uint8Array
  tokenCount: number
  noindex: boolean
  nofollow: boolean
  canonicalUrl: string | null
  linkCount: number
}

/**
 * `fetched`, key = canonical URL, or `robots:<url>`, `dns:<host>`, `visit:<host>`. One outcome.
 * A record with status 0 and `startedAt` 0 never reached a server.
 */
export interface Fetched {
  outcomeKind: OutcomeKind
  fetchId: string
  leaseId: string
  visitKind: VisitKind
  /** Index in the visit's urls. */
  index: number
  attempt: number
  entryKind: EntryKind
  host: string
  site: string
  gate: string
  /** As requested. For dns: the host. */
  url: string
  depth: number
  seedChain: boolean
  startedAt: number
  endedAt: number
  headersMs: number
  status: number
  error: FetchError
  errorMessage: string | null
  /** Absolute target of a 3xx. */
  location: string | null
  contentType: string | null
  charset: string | null
  /** As received, and with content coding undone. */
  rawBytes: number
  bodyBytes: number
  truncated: Truncation
  etag: string | null
  lastModified: string | null
  /** Of 429 and 503, both forms, clamped to 24 h; null = no header. */
  retryAfterMs: number | null
  delayMs: number
  delayReason: string
  robotsVersion: string | null
  address: string | null
  archive: ArchivePointer | null
  revisit: boolean
  payloadDigest: Uint8Array | null
  parse: ParseSummary | null
  /** outcomeKind robots: the decoded body, at most 512 KiB. */
  robotsBody: Uint8Array | null
  /** outcomeKind dns. */
  addresses: string[]
  ttlMs: number
  /** outcomeKind visit-end: keys of the visit's entries that were not started, and why. */
  unstarted: string[]
  reason: string | null
}

/** `parsed`, key = canonical URL. */
export interface Parsed {
  url: string
  fetchId: string
  fetchedAt: number
  parseVersion: number
  title: string | null
  snippet: string | null
  text: string
  language: string | null
  contentHash: Uint8Array
  /** F1 (recall) and F2 (precision). */
  simhash: Uint8Array
  simhash2: Uint8Array
  tokenCount: number
  noindex: boolean
  nofollow: boolean
  canonicalUrl: string | null
  linkCount: number
  extracted: { [field: string]: string[] }
}

export type StateName = 'queued' | 'leased' | 'parked' | 'known' | 'gone'
/** Parked: robots, robots-unreachable, dns, back-off, budget, depth, trap, paused. Known: ok, redirect, missing, forbidden, failed, refused. */
export type StateReason =
  | 'none'
  | 'robots'
  | 'robots-unreachable'
  | 'dns'
  | 'back-off'
  | 'budget'
  | 'depth'
  | 'trap'
  | 'paused'
  | 'ok'
  | 'redirect'
  | 'missing'
  | 'forbidden'
  | 'failed'
  | 'refused'

/** `page-states`, key = canonical URL; written by schedule alone, at admission and at each outcome. */
export interface PageState {
  sequence: number
  state: StateName
  reason: StateReason
  /** The rule, error or status behind it, in a few words. */
  evidence: string | null
  since: number
  next: number | null
  depth: number
  importance: number
  changeCount: number
  lastCrawledAt: number | null
  httpStatus: number
  contentHash: Uint8Array | null
  simhash: Uint8Array | null
  duplicateOf: string | null
  lastFetchId: string | null
}

export interface OriginPolicy {
  origin: string
  /** Hex XXH64 of the body, `none` for allow-all of a 4xx, `unreachable` for disallow-all. */
  robotsVersion: string
  verdict: 'rules' | 'allow-all' | 'disallow-all'
  httpStatus: number
  fetchedAt: number
  expiresAt: number
  crawlDelayMs: number | null
  /** Of our group: `Disallow: /x` and `Allow: /y` lines as written, at most 1,000. */
  rules: string[]
}

/** `host-policies`, key = host. */
export interface HostPolicy {
  site: string
  address: string | null
  gate: string | null
  delayMs: number
  delayReason: string
  backOffUntil: number | null
  backOffReason: string | null
  origins: OriginPolicy[]
}

export interface DecisionReason {
  /** A stable code: out-of-scope, scheme, port, syntax, too-long, nofollow, repeat-cache, repeat, robots, depth, … */
  code: string
  count: number
  /** At most three. */
  examples: string[]
}

/** `decisions`, key = source page (canonicalize, dedupe, parse) or canonical URL (schedule). */
export interface Decision {
  processor: 'canonicalize' | 'dedupe' | 'schedule' | 'parse'
  fetchId: string | null
  /** Links looked at (canonicalize), else the sum of counts. */
  total: number
  reasons: DecisionReason[]
  evidence: string | null
  at: number
}

/**
 * `controls`, written to every partition. Keys: `scope` (mode, ports), `scope-host:<host>` (one host that is in scope,
 * with its site and ports), each by itself, so that nobody overwrites another's rule.
 */
export interface Control {
  kind: 'scope' | 'scope-host'
  mode: 'host' | 'domain' | 'any'
  host: string | null
  site: string | null
  /** Besides 80 and 443. */
  ports: number[]
  why: string
  at: number
}
