import { isPublicAddress } from '../connectors/http/addresses.ts'
import { createRecordBatch } from '../connectors/log/batch.ts'
import type { Log } from '../connectors/log/types.ts'
import { canonicalizeUrl } from '../processors/canonicalize/url.ts'
import { literalAddress } from '../processors/schedule/gate.ts'
import { siteOf } from '../processors/site.ts'
import { stringSerde, topicSerde } from '../schemas/codec.ts'
import { partitionOf, xxh64Hex } from '../schemas/hash.ts'
import { createLinksWriter, maxLinks } from '../schemas/links.ts'
import { type Control, type DiscoveredUrls, linkFlags } from '../schemas/types.ts'
import { CommandError, usageError } from './errors.ts'
import type { Settings } from './settings.ts'
import { topicName } from './topics.ts'

export interface Seed {
  readonly url: string
  readonly host: string
  readonly port: number
}

/** Throws a usage error that names every operand that is no URL a crawl can start from. */
export function readSeeds(operands: readonly string[], maxUrlLength: number): Seed[] {
  const faults: string[] = []
  const seeds: Seed[] = []
  for (const operand of operands) {
    const result = canonicalizeUrl(operand, undefined, { maxUrlLength })
    if ('error' in result) {
      const guess = `https://${operand}`
      const hint = !operand.includes('://') && URL.canParse(guess) ? ` (did you mean ${guess}?)` : ''
      faults.push(`"${operand}": ${result.error.message}${hint}`)
    } else seeds.push({ url: result.fetchUrl, host: result.host, port: result.port })
  }
  if (faults.length > 0) throw usageError(`reading the seeds: ${faults.join('; ')}`)
  return seeds
}

/** Whether a host lies on the public web as far as its name tells: not localhost, not a special-purpose address. */
export function isPublicHost(host: string): boolean {
  if (host === 'localhost' || host.endsWith('.localhost')) return false
  const address = literalAddress(host)
  return address === null || isPublicAddress(address)
}

/**
 * The hosts of the seeds that the crawl was given so far, from its rules. Hosts that a redirect opened are not among them:
 * where a server points must not decide what a start asks for; the address is checked where it is connected.
 */
export async function seedHosts(log: Log, crawl: string): Promise<string[]> {
  const hosts = new Set<string>()
  const serde = topicSerde<Control>('controls')
  // Rules are in every partition; one is enough.
  const partition = log.partition(topicName(crawl, 'controls'), 0)
  for (let next = 0; ; ) {
    const batch = await log.read(partition, next, 1 << 20, 'stable')
    if (batch === null) return [...hosts]
    for (let i = 0; i < batch.count; i++) {
      const value = batch.value(i)
      if (value === null) continue
      try {
        const { kind, host, why } = serde.deserialize(value)
        if (kind === 'scope-host' && host !== null && why === seedRuleWhy) hosts.add(host)
      } catch {
        // A rule that nobody can read opens nothing.
      }
    }
    next = batch.nextOffset
  }
}

/** The reason that the rule of a seed's host carries; a redirect's names the redirect. */
const seedRuleWhy = 'a seed'

export interface SeedRecords {
  readonly controls: readonly { readonly key: string; readonly value: Control }[]
  readonly discovered: { readonly key: string; readonly value: DiscoveredUrls }
}

/**
 * The scope that seeds open, one rule a host, and the seeds as one source of links. Equal for equal operands. Throws a
 * usage error when they do not fit into one record.
 */
export function seedRecords(seeds: readonly Seed[], settings: Pick<Settings, 'scope'>, atMs: number): SeedRecords {
  const hosts = new Map<string, Set<number>>()
  for (const { host, port } of seeds) {
    const ports = hosts.get(host) ?? new Set()
    if (port !== 80 && port !== 443) ports.add(port)
    hosts.set(host, ports)
  }
  const rule = { mode: settings.scope, at: atMs }
  const controls: SeedRecords['controls'] = [
    {
      key: 'scope',
      value: { kind: 'scope', host: null, site: null, ports: [], why: `--scope ${settings.scope}`, ...rule },
    },
    ...[...hosts].map(([host, ports]) => ({
      key: `scope-host:${host}`,
      value: {
        kind: 'scope-host' as const,
        host,
        site: siteOf(host),
        ports: [...ports].sort((a, b) => a - b),
        why: seedRuleWhy,
        ...rule,
      },
    })),
  ]
  const links = createLinksWriter()
  for (const url of new Set(seeds.map((seed) => seed.url))) links.add('seed', linkFlags.seedChain, url)
  if (links.excessCount > 0) {
    throw usageError(
      `reading the seeds: ${seeds.length} are too many for one command, which takes ${maxLinks} or 256 KiB; give the others in further commands on the same --data`,
    )
  }
  const source = `seed:${xxh64Hex(seeds.map(({ url }) => url).join('\n'))}`
  return {
    controls,
    discovered: {
      key: source,
      value: {
        sourceKind: 'seed',
        source,
        depth: 0,
        hops: 0,
        baseUrl: seeds[0]!.url,
        fetchId: '',
        cash: 0,
        links: links.bytes(),
        linkCount: links.count,
        excessCount: links.excessCount,
      },
    },
  }
}

/** Writes rules (to every partition) and seeds in one commit. */
export async function writeSeeds(
  log: Log,
  crawl: string,
  partitions: number,
  records: SeedRecords,
  atMs: number,
): Promise<void> {
  const lane = await log.lane(`${crawl}-seeds`)
  try {
    const unit = lane.begin('atomic')
    const batch = createRecordBatch()
    const controlSerde = topicSerde<Control>('controls')
    for (const { key, value } of records.controls) {
      batch.add(stringSerde.serialize(key), controlSerde.serialize(value), atMs)
    }
    for (let p = 0; p < partitions; p++) unit.append(log.partition(topicName(crawl, 'controls'), p), batch)
    batch.clear()
    const { key, value } = records.discovered
    batch.add(stringSerde.serialize(key), topicSerde<DiscoveredUrls>('discovered-urls').serialize(value), atMs)
    unit.append(log.partition(topicName(crawl, 'discovered-urls'), partitionOf(key, partitions)), batch)
    const outcome = await unit.commit([])
    if (outcome.kind !== 'committed') {
      const why = 'error' in outcome ? outcome.error.message : 'fenced by another process'
      throw new CommandError('seeds', 1, `writing the seeds: ${why}`)
    }
  } finally {
    await lane.close()
  }
}
