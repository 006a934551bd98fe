import type { ArchivePointer, EntryKind, StateName, StateReason, VisitKind } from '../../schemas/types.ts'

/** Why nothing behind it is asked for, and until when. */
export interface Park {
  reason: StateReason
  until: number
  since: number
  evidence: string
}

/** One scheme, host and port: its robots.txt, and how many URLs it has in which list of the frontier. */
export interface OriginRecord {
  origin: string
  verdict: 'unknown' | 'rules' | 'allow-all' | 'disallow-all'
  /** Hex XXH64 of the body, `none`, `unreachable`; empty = not fetched yet. */
  robotsVersion: string
  /** Key of the copy in use in the store `robots`. */
  bodyHash: string | null
  httpStatus: number
  fetchedAt: number
  expiresAt: number
  crawlDelayMs: number | null
  /** Fetches of robots.txt in a row that gave nothing. */
  failures: number
  /** Counts the versions: URLs refused by an earlier one are looked at again. */
  generation: number
  /** In the ready queue, leased ones included. */
  queued: number
  leased: number
  blocked: number
  park: Park | null
}

export interface Lease {
  leaseId: string
  visitKind: VisitKind
  issuedAt: number
  deadline: number
  size: number
  /** One bit an entry: no outcome yet. */
  open: Uint8Array
  /** visitKind robots: the origin of each entry. */
  origins: number[]
  /** Entries that something was done for. */
  outcomes: number
  /** Pages that answered. */
  pages: number
  /** A failure of the host was counted: others of the same visit tell nothing new. */
  struck: boolean
  /** End of `fetched`, sampled after the deadline: the lease ends when it was read up to there. */
  mark: number | null
}

export interface HostRecord {
  site: string
  origins: OriginRecord[]
  lease: Lease | null
  visitCounter: number
  /** Of the last URL queued. */
  sequence: number
  picks: number
  waiting: number
  deep: number
  dueAt: number | null
  park: Park | null
  holdUntil: number
  /** Visits in a row in which nothing was done. */
  vainVisits: number
  lastEndedAt: number | null
  responseMs: number | null
  latencyMs: number | null
  latencyBaselineMs: number | null
  throttledMs: number
  address: string | null
  gate: string | null
  addressExpiresAt: number
  /** Gate of the record in `host-scheduled`; null = none, or a tombstone. */
  publishedGate: string | null
  nameFailures: number
  dnsFailures: number
  networkFailures: number
  serverErrors: number
  throttles: number
  forbidden: number
  /** Has ever given a 200. */
  answered: boolean
  pagesFetched: number
}

/**
 * Where the frontier holds a URL. `ready`: in the queue of its origin (leased ones stay there, so a lease that ends
 * for whatever reason has nothing to bring back). `wait`: until a time. `blocked`: refused by robots.txt. `deep`:
 * beyond the greatest depth.
 */
export type Place = 'none' | 'ready' | 'wait' | 'blocked' | 'deep'

export interface PageRecord {
  url: string
  fetchUrl: string
  host: string
  /** Index in the host's origins. */
  origin: number
  entryKind: EntryKind
  seedChain: boolean
  place: Place
  queueClass: number
  /** ready: number in the queue; blocked: generation of the rules. */
  order: number
  state: StateName
  reason: StateReason
  evidence: string | null
  since: number
  next: number | null
  depth: number
  /** Redirects in a row that led to it. */
  hops: number
  /** Attempts charged since the last answer. */
  attempt: number
  /** 404 or 410 in a row. */
  missing: number
  missingSince: number | null
  /** Of a URL that is gone. */
  recheckMs: number
  intervalMs: number
  fetches: number
  changes: number
  etag: string | null
  lastModified: string | null
  payloadDigest: Uint8Array | null
  contentHash: Uint8Array | null
  simhash: Uint8Array | null
  httpStatus: number
  lastFetchId: string | null
  lastFetchedAt: number | null
  /** When the version that validators and digest are of was fetched. */
  validatedAt: number | null
  archive: ArchivePointer | null
  sequence: number
}

export interface CountsRecord {
  sums: { [name: string]: number }
}

export function newHost(site: string): HostRecord {
  return {
    site,
    origins: [],
    lease: null,
    visitCounter: 0,
    sequence: 0,
    picks: 0,
    waiting: 0,
    deep: 0,
    dueAt: null,
    park: null,
    holdUntil: 0,
    vainVisits: 0,
    lastEndedAt: null,
    responseMs: null,
    latencyMs: null,
    latencyBaselineMs: null,
    throttledMs: 0,
    address: null,
    gate: null,
    addressExpiresAt: 0,
    publishedGate: null,
    nameFailures: 0,
    dnsFailures: 0,
    networkFailures: 0,
    serverErrors: 0,
    throttles: 0,
    forbidden: 0,
    answered: false,
    pagesFetched: 0,
  }
}

export function newOrigin(origin: string): OriginRecord {
  return {
    origin,
    verdict: 'unknown',
    robotsVersion: '',
    bodyHash: null,
    httpStatus: 0,
    fetchedAt: 0,
    expiresAt: 0,
    crawlDelayMs: null,
    failures: 0,
    generation: 0,
    queued: 0,
    leased: 0,
    blocked: 0,
    park: null,
  }
}

export function newPage(
  from: Pick<
    PageRecord,
    'url' | 'fetchUrl' | 'host' | 'origin' | 'entryKind' | 'seedChain' | 'depth' | 'hops' | 'since'
  >,
): PageRecord {
  return {
    ...from,
    place: 'none',
    queueClass: 0,
    order: 0,
    state: 'queued',
    reason: 'none',
    evidence: null,
    next: null,
    attempt: 0,
    missing: 0,
    missingSince: null,
    recheckMs: 0,
    intervalMs: 0,
    fetches: 0,
    changes: 0,
    etag: null,
    lastModified: null,
    payloadDigest: null,
    contentHash: null,
    simhash: null,
    httpStatus: 0,
    lastFetchId: null,
    lastFetchedAt: null,
    validatedAt: null,
    archive: null,
    sequence: 0,
  }
}

/** The one of two parks that lasts longer: what a URL behind both of them waits for. */
export function longerPark(host: Park | null, origin: Park | null): Park | null {
  if (host === null || origin === null) return host ?? origin
  return host.until > origin.until ? host : origin
}

/** Bits of a lease. */
export function openBits(size: number): Uint8Array {
  const bits = new Uint8Array((size + 7) >> 3)
  for (let i = 0; i < size; i++) bits[i >> 3]! |= 1 << (i & 7)
  return bits
}

export function isOpen(lease: Lease, index: number): boolean {
  return index >= 0 && index < lease.size && (lease.open[index >> 3]! & (1 << (index & 7))) !== 0
}

export function closeBit(lease: Lease, index: number): void {
  lease.open[index >> 3]! &= ~(1 << (index & 7))
}

export function allClosed(lease: Lease): boolean {
  return lease.open.every((byte) => byte === 0)
}
