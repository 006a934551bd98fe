import { type FaultRates, noFaultRates, standardFaultRates } from './faults.ts'
import { createRandom, hash32 } from './random.ts'
import { type ResponsePlan, respond, type WebRequestHead } from './respond.ts'
import { planSite, type Site } from './site.ts'

export interface WebOptions {
  readonly seed: number
  readonly hosts: number
  /** Pages of text on a host, on average; redirects, missing pages, files and forbidden places come on top. */
  readonly pagesPerHost: number
  /** Of HTML, on average. */
  readonly pageBytes: number
  /** Things go wrong for a while: see faults.ts for what and how often. */
  readonly faults: boolean | Partial<FaultRates>
  /** In URLs; 80 is left out of them. Default 80. */
  readonly port?: number
  /** Hosts take turns on these. Default 127.0.0.1. */
  readonly addresses?: readonly string[]
  /** Hosts that share a registrable name. Default 1. */
  readonly hostsPerSite?: number
  /** Typical time to the head of a response. Default 80. */
  readonly latencyMs?: number
  /** Some hosts answer with gzip when it is accepted. Default false. */
  readonly gzip?: boolean
  /** Values of Crawl-delay, in seconds. Default 1.5, 2, 3. */
  readonly crawlDelays?: readonly number[]
  /** Half the pages change this often, each at its own time. Default: never. */
  readonly changeIntervalMs?: number | null
}

/** What the servers remember: how often each URL and each name was asked for. */
export interface WebState {
  /** When the web began, wall clock: outages and editions count from here. */
  readonly startMs: number
  readonly requests: Map<string, number>
  readonly queries: Map<string, number>
}

export type DnsPlan = {
  readonly delayMs: number
  readonly result:
    | {
        readonly kind: 'ok'
        readonly addresses: readonly string[]
        readonly ttlMs: number
      }
    | {
        readonly kind: 'error'
        readonly error: 'nxdomain' | 'servfail' | 'timeout'
      }
}

export interface Walk {
  /** Where the walk starts. Default: the home page of every host. */
  readonly seeds?: readonly string[]
  /** `host`: only hosts of seeds. Default `any`. */
  readonly scope?: 'host' | 'any'
}

/** A web that is a function of its options; what changes is in a WebState that the caller holds. */
export interface WebModel {
  readonly options: WebOptions
  readonly hosts: readonly string[]
  /** Absent for a name that does not exist. */
  site(host: string): Site | undefined
  /** The home page of every host. */
  seeds(): string[]
  urlOf(host: string, path: string): string
  /**
   * Every page (status 200 in the end, text/html) that robots.txt allows and that links and redirects reach by allowed
   * pages; spelled as the WHATWG URL serializer does. Value: fewest links from a seed, redirects not counted.
   */
  allowedPages(walk?: Walk): ReadonlyMap<string, number>
  /** Every URL that robots.txt forbids. */
  disallowedPages(): ReadonlySet<string>
  /** Of robots.txt; 0 = none. */
  crawlDelayMs(host: string): number
  /** max(minDelayMs, crawl-delay). */
  requiredDelayMs(host: string, minDelayMs: number): number
  /** `/robots.txt`, or what it redirects to. */
  robotsPath(host: string): string
  addressOf(host: string): string | undefined
  /** Whether the host has the path, and so something may link to it. */
  isKnown(host: string, path: string): boolean
  createState(startMs: number): WebState
  resolve(host: string, state: WebState): DnsPlan
  /** Whether the host takes connections now. */
  isUp(host: string, nowMs: number, state: WebState): boolean
  /** How long a connection takes. */
  connectMs(host: string): number
  /** Counts the request in `state`. */
  respond(request: WebRequestHead, state: WebState): ResponsePlan
}

export function createWebModel(options: WebOptions): WebModel {
  const { seed, port = 80, addresses = ['127.0.0.1'] } = options
  if (options.hosts < 1 || options.pagesPerHost < 1 || addresses.length === 0) {
    throw new Error('creating a simulated web: hosts, pagesPerHost and addresses must be at least 1')
  }
  const hosts = hostNames(options.hosts, options.hostsPerSite ?? 1)
  const indexes = new Map(hosts.map((host, index) => [host, index]))
  const sites = new Map<string, Site>()
  const rates = faultRates(options.faults)
  const origin = (host: string): string => (port === 80 ? `http://${host}` : `http://${host}:${port}`)
  const urlOf = (host: string, path: string): string => origin(host) + path

  function site(host: string): Site | undefined {
    const index = indexes.get(host)
    if (index === undefined) return undefined
    let found = sites.get(host)
    if (found === undefined) {
      const random = createRandom(seed, 'size', host)
      const children = linkedHosts(index, hosts.length)
      found = planSite({
        seed,
        index,
        host,
        origin: origin(host),
        address: addresses[index % addresses.length]!,
        pages: Math.max(1, Math.round(options.pagesPerHost * random.between(0.5, 1.5))),
        rates,
        latencyMs: options.latencyMs ?? 80,
        gzip: options.gzip ?? false,
        crawlDelays: options.crawlDelays ?? [1.5, 2, 3],
        mustLink: children.map((child) => urlOf(hosts[child]!, '/')),
        // One link out in fifty leads to a name that nobody has any more.
        outside: (r) => (r.chance(0.02) ? `http://gone${r.int(1_000)}.localhost/` : urlOf(r.pick(hosts), '/')),
      })
      sites.set(host, found)
    }
    return found
  }

  function known(host: string): Site {
    const found = site(host)
    if (found === undefined) throw new Error(`looking up ${host}: no such host in this web`)
    return found
  }

  const model: WebModel = {
    options,
    hosts,
    site,
    urlOf,
    seeds: () => hosts.map((host) => urlOf(host, '/')),
    allowedPages: (walk = {}) => walkModel(model, walk),
    disallowedPages() {
      const urls = new Set<string>()
      for (const host of hosts) {
        for (const page of known(host).pages.values()) if (page.disallowed) urls.add(urlOf(host, page.path))
      }
      return urls
    },
    crawlDelayMs: (host) => site(host)?.robots.crawlDelayMs ?? 0,
    requiredDelayMs: (host, minDelayMs) => Math.max(minDelayMs, model.crawlDelayMs(host)),
    robotsPath: (host) => site(host)?.robots.path ?? '/robots.txt',
    addressOf: (host) => site(host)?.address,
    isKnown: (host, path) => site(host)?.pages.has(path) ?? false,
    createState: (startMs) => ({
      startMs,
      requests: new Map(),
      queries: new Map(),
    }),
    resolve(host, state) {
      const delayMs = 5 + (hash32(host) % 40)
      const query = (state.queries.get(host) ?? 0) + 1
      state.queries.set(host, query)
      const found = site(host)
      if (found === undefined) return { delayMs, result: { kind: 'error', error: 'nxdomain' } }
      const fault = found.faults.dns
      if (fault !== null && query <= fault.times) {
        return {
          delayMs: fault.error === 'timeout' ? 5_000 : delayMs,
          result: { kind: 'error', error: fault.error },
        }
      }
      return {
        delayMs,
        result: {
          kind: 'ok',
          addresses: [found.address],
          ttlMs: found.dnsTtlMs,
        },
      }
    },
    isUp(host, nowMs, state) {
      const down = site(host)?.faults.down ?? null
      const at = nowMs - state.startMs
      return down === null || at < down.fromMs || at >= down.toMs
    },
    connectMs: (host) => 1 + (hash32(host) % 20),
    respond: (request, state) => respond(model, request, state),
  }
  return model
}

/** Breadth first over the plan, not over HTML. */
function walkModel(model: WebModel, walk: Walk): Map<string, number> {
  const allowed = new Map<string, number>()
  const seeds = walk.seeds ?? model.seeds()
  const inScope = walk.scope === 'host' ? new Set(seeds.map((url) => new URL(url).hostname)) : null
  const depths = new Map<string, number>()
  const queue: string[] = []
  const visit = (url: string, depth: number): void => {
    if (depths.has(url)) return
    depths.set(url, depth)
    queue.push(url)
  }
  for (const seed of seeds) visit(seed, 0)
  for (let at = 0; at < queue.length; at++) {
    const url = queue[at]!
    const depth = depths.get(url)!
    const { hostname, pathname, search } = new URL(url)
    if (inScope !== null && !inScope.has(hostname)) continue
    const page = model.site(hostname)?.pages.get(pathname + search)
    if (page === undefined || page.disallowed) continue
    if (page.redirect !== null) visit(model.urlOf(hostname, page.redirect.to), depth)
    if (page.kind !== 'page') continue
    allowed.set(url, depth)
    for (const link of page.links) visit(model.urlOf(hostname, link.path), depth + 1)
    for (const link of page.outside) visit(link, depth + 1)
  }
  return allowed
}

/** `h001.localhost`, and beside it `www.h001.localhost`, … where hosts share a registrable name. */
function hostNames(count: number, hostsPerSite: number): string[] {
  const subdomains = ['', 'www.', 'blog.', 'docs.', 'shop.', 'news.']
  const width = Math.max(3, String(Math.ceil(count / hostsPerSite)).length)
  return Array.from({ length: count }, (_, i) => {
    const turn = i % hostsPerSite
    const name = `h${String(Math.floor(i / hostsPerSite) + 1).padStart(width, '0')}.localhost`
    return (subdomains[turn] ?? `s${turn}.`) + name
  })
}

/** Hosts as a tree three links deep from the first: which ones a host's home page must link to. */
function linkedHosts(index: number, count: number): number[] {
  const branching = Math.max(16, Math.ceil(count ** (1 / 3)))
  const children: number[] = []
  for (let i = index * branching + 1; i <= index * branching + branching && i < count; i++) children.push(i)
  return children
}

function faultRates(faults: WebOptions['faults']): FaultRates {
  if (faults === true) return standardFaultRates
  return faults === false ? noFaultRates : { ...noFaultRates, ...faults }
}
