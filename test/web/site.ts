import {
  type FaultRates,
  type HostFaults,
  noFaultRates,
  pickHostFaults,
  pickPageFault,
  type UrlFault,
} from './faults.ts'
import { createRandom, type Random } from './random.ts'
import { pickRobots, type RobotsPlan } from './robots.ts'
import { noun } from './text.ts'

export type PageKind = 'page' | 'redirect' | 'missing' | 'file'

/** One URL of a host: a page, or something that a link can also lead to. */
export interface SitePage {
  /** Path and query as a URL parser writes them. */
  readonly path: string
  readonly kind: PageKind
  /** Of a response that nothing went wrong with. */
  readonly status: number
  /** The host's robots.txt forbids it. Known from how the path was made, not from a robots matcher. */
  readonly disallowed: boolean
  /** Path of the page whose text this one shows: its own, or that of what it (nearly) duplicates. */
  readonly textOf: string
  /** Every n-th word differs from the original (0 = none). */
  readonly editEvery: number
  /** Links are written as absolute paths, so that the same bytes mean the same under another path. */
  plainLinks: boolean
  /** On the same host, in order of appearance, repeats possible. */
  readonly links: SitePage[]
  /** Absolute URLs on other hosts. */
  readonly outside: string[]
  /** A path on the same host. */
  readonly redirect: { readonly to: string; readonly absolute: boolean } | null
  readonly fault: UrlFault | null
}

/** One host: all that its server knows. A function of (seed, index) and the options. */
export interface Site {
  readonly host: string
  /** Scheme, host and port. */
  readonly origin: string
  readonly address: string
  readonly pages: ReadonlyMap<string, SitePage>
  readonly robots: RobotsPlan
  readonly faults: HostFaults
  readonly charset: 'utf-8' | 'iso-8859-1'
  readonly gzip: boolean
  /** Typical time to the head of a response. */
  readonly latencyMs: number
  readonly bytesPerSec: number
  readonly dnsTtlMs: number
}

export interface SiteOptions {
  readonly seed: number
  readonly index: number
  readonly host: string
  readonly origin: string
  readonly address: string
  /** Pages with status 200 that hold text, about. */
  readonly pages: number
  readonly rates: FaultRates
  readonly latencyMs: number
  readonly gzip: boolean
  /** Seconds; one of them on each host that asks for a delay. */
  readonly crawlDelays: readonly number[]
  /** Home pages of other hosts that the home page must link to, and the pool for all other links out. */
  readonly mustLink: readonly string[]
  outside(random: Random): string
}

/**
 * Plans a host: a tree of pages at most four links deep from `/`, some edges of which lead through redirects, with
 * duplicates, near-duplicates, missing pages, files and robots-forbidden places hung on it, and cross links.
 */
export function planSite(options: SiteOptions): Site {
  const { seed, host } = options
  const random = createRandom(seed, 'site', host)
  // A host that others are found through is never closed: its subtree would hang on chance.
  const mustBeOpen = options.index === 0 || options.mustLink.length > 0
  const robots = pickRobots(random, host, mustBeOpen, options.crawlDelays)
  const faults = pickHostFaults(createRandom(seed, 'host-faults', host), options.rates)
  const pages = new Map<string, SitePage>()

  const add = (path: string, over: Partial<SitePage> = {}): SitePage => {
    if (pages.has(path)) throw new Error(`planning ${host}: ${path} exists already`)
    const kind = over.kind ?? 'page'
    const page: SitePage = {
      path,
      kind,
      status: 200,
      disallowed: robots.closed,
      textOf: path,
      editEvery: 0,
      plainLinks: false,
      links: [],
      outside: [],
      redirect: null,
      fault: pickPageFault(createRandom(seed, 'fault', host, path), kind === 'page' ? options.rates : noFaultRates),
      ...over,
    }
    pages.set(path, page)
    return page
  }
  const redirectTo = (path: string, to: string): SitePage =>
    add(path, {
      kind: 'redirect',
      status: random.pick([301, 302, 301, 308, 307]),
      redirect: { to, absolute: random.chance(0.5) },
    })

  const near = Math.round(options.pages * 0.03)
  const same = Math.round(options.pages * 0.03)
  const treeSize = Math.max(1, options.pages - near - same)
  const tree = growTree(random, treeSize, add)
  const home = tree[0]!
  const start = home.path === '/' ? home : redirectTo('/', home.path)
  linkTree(random, tree, redirectTo)

  const hang = (page: SitePage): void => {
    random.pick(tree).links.push(page)
  }
  for (let i = 0; i < same + near; i++) {
    const original = random.pick(tree)
    original.plainLinks = true
    const path = i < same ? `/print/${i}-${noun(random)}.html` : `/archive/${i}-${noun(random)}/`
    const editEvery = i < same ? 0 : 40 + random.int(60)
    hang(
      add(path, {
        textOf: original.textOf,
        editEvery,
        plainLinks: true,
        links: original.links,
        outside: original.outside,
      }),
    )
  }
  for (let i = Math.round(options.pages * 0.04); i > 0; i--) {
    hang(
      add(`/old/${noun(random)}-${i}.html`, {
        kind: 'missing',
        status: random.chance(0.85) ? 404 : 410,
      }),
    )
  }
  for (let i = Math.round(options.pages * 0.02); i > 0; i--) {
    hang(add(`/files/${noun(random)}-${i}.zip`, { kind: 'file' }))
  }
  if (options.pages >= 4) hangRestricted(random, robots, options.pages, add, redirectTo, hang)

  for (const page of tree) {
    for (let i = random.int(8); i > 0; i--) page.links.push(random.pick(tree))
    if (random.chance(0.3)) page.outside.push(options.outside(random))
    page.links.push(start)
  }
  home.outside.push(...options.mustLink)
  return {
    host,
    origin: options.origin,
    address: options.address,
    pages,
    robots,
    faults,
    charset: random.chance(0.08) ? 'iso-8859-1' : 'utf-8',
    gzip: options.gzip && random.chance(0.6),
    latencyMs: options.latencyMs * random.between(0.3, 1.7),
    bytesPerSec: random.between(300_000, 5_000_000),
    dnsTtlMs: 1_000 * random.pick([60, 300, 3_600, 86_400]),
  }
}

type Add = (path: string, over?: Partial<SitePage>) => SitePage
type RedirectTo = (path: string, to: string) => SitePage

/** The index of a node's parent in a tree that is filled level by level. */
function parentOf(index: number, size: number): number {
  return Math.floor((index - 1) / branching(size))
}

/** So many children that four levels hold all nodes. */
function branching(size: number): number {
  return Math.max(4, Math.ceil(size ** 0.25))
}

function growTree(random: Random, size: number, add: Add): SitePage[] {
  const home = random.chance(0.15) ? random.pick(['/home/', '/index.html', '/en/']) : '/'
  const tree = [add(home)]
  for (let i = 1; i < size; i++) {
    const parent = parentOf(i, size)
    const section = parent === 0 ? '/' : directory(tree[parent]!.path)
    const name = `${noun(random)}-${random.chance(0.5) ? `${noun(random)}-` : ''}${i}`
    const form = random.next()
    if (form < 0.4) tree.push(add(`${section}${name}/`))
    else if (form < 0.8) tree.push(add(`${section}${name}.html`))
    else if (form < 0.9) tree.push(add(`${section}${name}`))
    else if (form < 0.95) tree.push(add(`${section}view?id=${i}&lang=en`))
    else tree.push(add(`${section}caf%C3%A9-${name}`))
  }
  return tree
}

function linkTree(random: Random, tree: readonly SitePage[], redirectTo: RedirectTo): void {
  for (let i = 1; i < tree.length; i++) {
    const parent = tree[parentOf(i, tree.length)]!
    const page = tree[i]!
    page.links.push(parent)
    if (!random.chance(0.09)) parent.links.push(page)
    else {
      const last = redirectTo(`/go/${i}`, page.path)
      parent.links.push(random.chance(0.25) ? redirectTo(`/r/${i}`, last.path) : last)
    }
  }
}

/** Places that the usual robots.txt forbids, their look-alikes that it allows, and what only forbidden pages link to. */
function hangRestricted(
  random: Random,
  robots: RobotsPlan,
  pages: number,
  add: Add,
  redirectTo: RedirectTo,
  hang: (page: SitePage) => void,
): void {
  const forbidden = { disallowed: robots.closed || robots.rules }
  const first = add(`/private/${noun(random)}`, forbidden)
  first.links.push(add(`/hidden/${noun(random)}`))
  hang(first)
  hang(redirectTo('/go/private', first.path))
  if (random.chance(0.3)) {
    hang(redirectTo('/loop/1', '/loop/2'))
    redirectTo('/loop/2', '/loop/1')
  }
  for (let i = 0; i < Math.ceil(pages * 0.06); i++) {
    const word = `${noun(random)}-${i}`
    const made = [
      () => add(`/private/${word}.html`, forbidden),
      () => add(`/private/open-${word}.html`),
      () => add(`/tools/${word}.cgi`, forbidden),
      () => add(`/tools/${word}.cgi.html`),
      () => add(`/find?q=${word}`, forbidden),
      () => add(`/find/${word}`),
    ][i % 6]!()
    hang(made)
  }
}

function directory(path: string): string {
  const bare = path.split('?', 1)[0]!
  return bare.slice(0, bare.lastIndexOf('/') + 1)
}
