import type { Archive } from '../../connectors/archive/types.ts'
import type { Resolver } from '../../connectors/dns/types.ts'
import type { Faults } from '../../connectors/faults/types.ts'
import type { HttpClient } from '../../connectors/http/types.ts'
import type { Decision, DiscoveredUrls, Fetched, Parsed } from '../../schemas/types.ts'
import type { ProcessorContext } from '../../topology/streams/types.ts'
import type { Extractor } from '../parse/extract.ts'
import type { PageInput, ParsedPage } from '../parse/page.ts'

/** Makes a page of bytes; null for a type that nobody reads. Synchronous; an exception is recorded, no more. */
export type PageParser = (input: PageInput) => ParsedPage | null

export interface FetchOptions {
  readonly http: HttpClient
  readonly resolver: Resolver
  readonly archive: Archive
  readonly parse: PageParser
  /** Fields that users' rules read from a page; an exception is recorded, no more. */
  readonly extract?: Extractor
  /** Of parser and rules, as `parsed` tells it. */
  readonly parseVersion?: number
  readonly userAgent: string
  /** The name that robots directives address us by. */
  readonly agentToken: string
  /** Allows addresses that are not of the public internet. */
  readonly allowPrivate?: boolean
  /** What one request may take in all: none starts later than this before its visit's deadline. */
  readonly requestTimeoutMs?: number
  readonly connectTimeoutMs?: number
  readonly headersTimeoutMs?: number
  readonly minBytesPerSec?: number
  /** Caps on decoded bytes. RFC 9309 §2.5 asks for at least 500 KiB of a robots.txt. */
  readonly maxPageBytes?: number
  readonly maxRobotsBytes?: number
  /** How far clocks may differ; a visit stamped further ahead than this and the look-ahead is an alarm. */
  readonly skewAllowanceMs?: number
  /** How far ahead of its time a visit may be issued by design. */
  readonly lookaheadMs?: number
  /** Kept on top of every delay: a server may see its response end a little later than we do, and its view counts. */
  readonly gapMarginMs?: number
  /** Hosts whose last response this fetcher remembers, to measure the gap from it. */
  readonly maxHosts?: number
  readonly faults?: Faults
  /** Once aborted no request starts any more; what is open ends, and visits name what they did not start. */
  readonly stopping?: AbortSignal
}

export type FetchOutput = DiscoveredUrls | Parsed | Decision | Fetched
export type FetchContext = ProcessorContext<string, FetchOutput>
/** With every default filled in. */
export type FetchSettings = Required<FetchOptions>
