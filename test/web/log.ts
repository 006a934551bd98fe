/** One request as the server saw it. */
export interface WebRequest {
  /** Without a port. */
  readonly host: string
  /** Path and query. */
  readonly path: string
  /** The request's arrival. Milliseconds, fractions allowed, on the server's own clock. */
  readonly startMs: number
  /** The response's end, or when the connection broke; null while it is open. */
  endMs: number | null
  /** 0 until a status is sent. */
  status: number
  /** The whole response was sent. */
  complete: boolean
  /** What Retry-After asked for, counted from the response's end; null = no such header. */
  retryAfterMs: number | null
  /** The server's. */
  readonly address: string
  readonly remotePort?: number
}

/** What the judge has to know of a web; a WebModel gives all of it, `staticFacts` that of a plain site. */
export interface WebFacts {
  urlOf(host: string, path: string): string
  /** URLs that must be fetched (keys). */
  allowedPages(): ReadonlyMap<string, unknown> | ReadonlySet<string>
  disallowedPages(): ReadonlySet<string>
  crawlDelayMs(host: string): number
  /** `/robots.txt`, or what it redirects to. */
  robotsPath(host: string): string
  /** Absent = every address is right. */
  addressOf?(host: string): string | undefined
  /** Whether anything links to it; absent = everything is known. */
  isKnown?(host: string, path: string): boolean
}

export interface JudgeOptions {
  readonly minDelayMs: number
  /** How much shorter a gap may be. Default 0. */
  readonly toleranceMs?: number
  /**
   * The delay is also this many times the host's response time: checked against the least one seen so far on the host,
   * which no average falls below, and at most `maxDelayMs` (default 60,000). Default 0.
   */
  readonly factor?: number
  readonly maxDelayMs?: number
  /** What must be fetched. Default: `facts.allowedPages()`. */
  readonly expected?: ReadonlyMap<string, unknown> | ReadonlySet<string>
}

export interface ShortGap {
  readonly url: string
  readonly gapMs: number
  readonly requiredMs: number
}

/** All lists are empty when the crawl was polite and complete. */
export interface Verdict {
  readonly requests: number
  readonly expected: number
  /** Expected pages with exactly one complete answer of 200. */
  readonly pagesOnce: number
  /** Expected pages without. */
  readonly missing: readonly string[]
  /** Expected pages with more than one. */
  readonly repeated: readonly string[]
  /** Requests that started on a host while another was open there. */
  readonly overlaps: readonly string[]
  /** Requests sooner after the last response's end on the host than the delay in force. */
  readonly shortGaps: readonly ShortGap[]
  /** Requests that robots.txt forbids. */
  readonly disallowed: readonly string[]
  /** Requests before the host's robots.txt was answered (other than by 5xx, 429, a redirect or a broken connection). */
  readonly beforeRobots: readonly string[]
  /** Requests sooner than a Retry-After of the host asked. */
  readonly earlyRetries: readonly ShortGap[]
  /** Requests for what nothing links to. */
  readonly unexpected: readonly string[]
  /** Requests that came to an address which the host's name does not have. */
  readonly wrongAddress: readonly string[]
}

/** Judges a crawl by what the servers saw, host by host, in order of arrival. The log may hold hosts in any order. */
export function judge(log: readonly WebRequest[], facts: WebFacts, options: JudgeOptions): Verdict {
  const disallowedPages = facts.disallowedPages()
  const expected = options.expected ?? facts.allowedPages()
  const answers = new Map<string, number>()
  const findings: Findings = {
    overlaps: [],
    shortGaps: [],
    disallowed: [],
    beforeRobots: [],
    earlyRetries: [],
    unexpected: [],
    wrongAddress: [],
  }
  for (const requests of byHost(log)) {
    for (const request of requests) {
      if (request.status !== 200 || !request.complete) continue
      const url = facts.urlOf(request.host, request.path)
      answers.set(url, (answers.get(url) ?? 0) + 1)
    }
    judgeHost(requests, facts, disallowedPages, options, findings)
  }
  const missing: string[] = []
  const repeated: string[] = []
  for (const url of expected.keys()) {
    const count = answers.get(url) ?? 0
    if (count === 0) missing.push(url)
    else if (count > 1) repeated.push(url)
  }
  return {
    requests: log.length,
    expected: expected.size,
    pagesOnce: expected.size - missing.length - repeated.length,
    missing,
    repeated,
    ...findings,
  }
}

/** The faults that a verdict names, in a line each; empty = none. */
export function faultsOf(verdict: Verdict): string[] {
  const lines: string[] = []
  for (const [name, found] of Object.entries(verdict)) {
    if (!Array.isArray(found) || found.length === 0) continue
    const first = found[0] as string | ShortGap
    const example = typeof first === 'string' ? first : `${first.url} after ${first.gapMs} of ${first.requiredMs} ms`
    lines.push(`${name}: ${found.length}, first ${example}`)
  }
  return lines
}

/** Facts of a site without robots rules, e.g. a directory of files, all of whose `pages` must be fetched. */
export function staticFacts(origin: string, pages: Iterable<string>): WebFacts {
  const allowed = new Set(pages)
  return {
    urlOf: (_host, path) => origin + path,
    allowedPages: () => allowed,
    disallowedPages: () => new Set(),
    crawlDelayMs: () => 0,
    robotsPath: () => '/robots.txt',
  }
}

type Findings = {
  [K in 'overlaps' | 'disallowed' | 'beforeRobots' | 'unexpected' | 'wrongAddress']: string[]
} & { shortGaps: ShortGap[]; earlyRetries: ShortGap[] }

function judgeHost(
  requests: readonly WebRequest[],
  facts: WebFacts,
  disallowedPages: ReadonlySet<string>,
  options: JudgeOptions,
  findings: Findings,
): void {
  const host = requests[0]!.host
  const robotsPath = facts.robotsPath(host)
  const toleranceMs = options.toleranceMs ?? 0
  let lastEndMs = Number.NEGATIVE_INFINITY
  let leastMs = Number.POSITIVE_INFINITY
  let robotsMs = Number.POSITIVE_INFINITY
  let notBefore = { atMs: Number.NEGATIVE_INFINITY, askedMs: 0 }

  for (const request of requests) {
    const url = facts.urlOf(host, request.path)
    const { startMs } = request
    const isRobots = request.path === '/robots.txt' || request.path === robotsPath
    const gapMs = startMs - lastEndMs
    // Robots.txt counts once the crawler can have read it.
    const crawlDelayMs = robotsMs <= startMs ? facts.crawlDelayMs(host) : 0
    const adaptive = Math.min(options.maxDelayMs ?? 60_000, leastMs * (options.factor ?? 0))
    const requiredMs = Math.max(options.minDelayMs, crawlDelayMs, Number.isFinite(leastMs) ? adaptive : 0)
    if (gapMs < 0) findings.overlaps.push(url)
    else if (gapMs < requiredMs - toleranceMs) findings.shortGaps.push({ url, gapMs, requiredMs })
    if (startMs < notBefore.atMs - toleranceMs) {
      findings.earlyRetries.push({
        url,
        gapMs: startMs - (notBefore.atMs - notBefore.askedMs),
        requiredMs: notBefore.askedMs,
      })
    }
    if (!isRobots && startMs < robotsMs) findings.beforeRobots.push(url)
    if (disallowedPages.has(url) && !isRobots) findings.disallowed.push(url)
    if (!isRobots && facts.isKnown?.(host, request.path) === false) findings.unexpected.push(url)
    if (facts.addressOf !== undefined && facts.addressOf(host) !== request.address) findings.wrongAddress.push(url)

    const endMs = request.endMs ?? Number.POSITIVE_INFINITY
    lastEndMs = Math.max(lastEndMs, endMs)
    leastMs = Math.min(leastMs, endMs - startMs)
    if (isRobots && request.path === robotsPath && isAnswer(request)) robotsMs = Math.min(robotsMs, endMs)
    if (request.retryAfterMs !== null && request.complete && endMs + request.retryAfterMs > notBefore.atMs) {
      notBefore = {
        atMs: endMs + request.retryAfterMs,
        askedMs: request.retryAfterMs,
      }
    }
  }
}

function isAnswer({ status, complete }: WebRequest): boolean {
  return complete && status >= 200 && status < 500 && status !== 429 && !(status >= 300 && status < 400)
}

function byHost(log: readonly WebRequest[]): WebRequest[][] {
  const hosts = new Map<string, WebRequest[]>()
  for (const request of log) {
    const requests = hosts.get(request.host)
    if (requests === undefined) hosts.set(request.host, [request])
    else requests.push(request)
  }
  for (const requests of hosts.values()) requests.sort((a, b) => a.startMs - b.startMs)
  return [...hosts.values()]
}
