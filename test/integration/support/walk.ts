import { Agent, request } from 'node:http'
import { pageLinks } from './links.ts'

export interface WalkResult {
  /** URLs that answered 200 with HTML. */
  readonly pages: ReadonlySet<string>
  /** URLs that answered 200 with something else. */
  readonly others: ReadonlySet<string>
  /** Redirecting URL → absolute target, without fragment. */
  readonly redirects: ReadonlyMap<string, string>
  /** URLs that answered 404 or 410. */
  readonly missing: ReadonlySet<string>
  /** Every other answer: URL → status, 0 for a broken connection. */
  readonly failed: ReadonlyMap<string, number>
  /** The bytes of each page, when asked for. */
  readonly bodies: ReadonlyMap<string, Buffer>
}

export interface WalkOptions {
  /** Connections at a time. Default 8. */
  readonly concurrency?: number
  /** Links further from the start are not followed, redirects not counted. Default: no limit. */
  readonly maxDepth?: number
  /** Keeps the bodies. Default false. */
  readonly keepBodies?: boolean
  /** The walk fails beyond so many URLs. Default 100,000. */
  readonly maxUrls?: number
}

/**
 * Every page of a host that links and redirects reach from `startUrl`, breadth first; the same scheme, host and port
 * only. Asks without any politeness and knows no robots.txt: for a server on loopback that has none.
 */
export async function walkSite(startUrl: string, options: WalkOptions = {}): Promise<WalkResult> {
  const start = new URL(startUrl)
  start.hash = ''
  const agent = new Agent({
    keepAlive: true,
    maxSockets: options.concurrency ?? 8,
  })
  const pages = new Set<string>()
  const others = new Set<string>()
  const redirects = new Map<string, string>()
  const missing = new Set<string>()
  const failed = new Map<string, number>()
  const bodies = new Map<string, Buffer>()
  const depths = new Map([[start.href, 0]])

  let level = [start.href]
  let found: string[] = []
  const follow = (url: string, depth: number): void => {
    const target = new URL(url)
    if (target.origin !== start.origin || depths.has(url) || depth > (options.maxDepth ?? Number.POSITIVE_INFINITY))
      return
    if (depths.size >= (options.maxUrls ?? 100_000)) throw new Error(`walking ${startUrl}: too many URLs`)
    depths.set(url, depth)
    found.push(url)
  }
  const visit = async (url: string): Promise<void> => {
    const depth = depths.get(url)!
    const { status, type, location, body } = await get(url, agent)
    if (status >= 300 && status < 400 && location !== undefined) {
      const target = new URL(location, url)
      target.hash = ''
      redirects.set(url, target.href)
      follow(target.href, depth)
    } else if (status === 404 || status === 410) missing.add(url)
    else if (status !== 200) failed.set(url, status)
    else if (!/^(text\/html|application\/xhtml\+xml)\b/i.test(type)) others.add(url)
    else {
      pages.add(url)
      if (options.keepBodies) bodies.set(url, body)
      for (const link of pageLinks(body.toString('utf8'), url)) follow(link, depth + 1)
    }
  }
  try {
    while (level.length > 0) {
      const queue = level.values()
      await Promise.all(
        Array.from({ length: options.concurrency ?? 8 }, async () => {
          for (const url of queue) await visit(url)
        }),
      )
      // A redirect's target has its source's depth: it comes before the links that were found beside it.
      const least = found.reduce((depth, url) => Math.min(depth, depths.get(url)!), Number.POSITIVE_INFINITY)
      level = found.filter((url) => depths.get(url) === least)
      found = found.filter((url) => depths.get(url) !== least)
    }
  } finally {
    agent.destroy()
  }
  return { pages, others, redirects, missing, failed, bodies }
}

type Answer = {
  status: number
  type: string
  location: string | undefined
  body: Buffer
}

function get(url: string, agent: Agent): Promise<Answer> {
  const { hostname, port, pathname, search, host } = new URL(url)
  // Names under localhost are this machine's (RFC 6761 section 6.3), whatever the system's resolver says.
  const connectTo = hostname === 'localhost' || hostname.endsWith('.localhost') ? '127.0.0.1' : hostname
  return new Promise((resolve) => {
    const broken = (): void =>
      resolve({
        status: 0,
        type: '',
        location: undefined,
        body: Buffer.alloc(0),
      })
    const options = {
      agent,
      host: connectTo,
      port: port || 80,
      path: pathname + search,
      headers: { host },
    }
    request(options, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', broken)
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          type: response.headers['content-type'] ?? '',
          location: response.headers.location,
          body: Buffer.concat(chunks),
        }),
      )
    })
      .on('error', broken)
      .end()
  })
}
