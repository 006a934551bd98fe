import { isPublicAddress } from '../connectors/http/addresses.ts'
import { createRecordBatch } from '../connectors/log/batch.ts'
import type { Log } from '../connectors/log/types.ts'
import { canonicalizeUrl } from '../processors/canonicalize/url.ts'
import { literalAddress } from '../processors/schedule/gate.ts'
import { siteOf } from '../processors/site.ts'
import { stringSerde, topicSerde } from '../schemas/codec.ts'
import { partitionOf, xxh64Hex } from '../schemas/hash.ts'
import { createLinksWriter } from '../schemas/links.ts'
import { type Control, type DiscoveredUrls, linkFlags } from '../schemas/types.ts'
import { usageError } from './errors.ts'
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

/** Seeds that lie on the public web as far as their names tell: not localhost, not a special-purpose address. */
export function publicSeeds(seeds: readonly Seed[]): Seed[] {
  return seeds.filter(({ host }) => {
    if (host === 'localhost' || host.endsWith('.localhost')) return false
    const address = literalAddress(host)
    return address === null || isPublicAddress(address)
  })
}

export interface SeedRecords {
  readonly controls: readonly { readonly key: string; readonly value: Control }[]
  readonly discovered: { readonly key: string; readonly value: DiscoveredUrls }
}

/** The scope that seeds open, one rule a host, and the seeds as one source of links. Equal for equal operands. */
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
        why: 'a seed',
        ...rule,
      },
    })),
  ]
  const links = createLinksWriter()
  for (const { url } of seeds) links.add('seed', linkFlags.seedChain, url)
  const source = `seed:${xxh64Hex(seeds.map(({ url }) => url).join('\n'))}`
  return {
    controls,
    discovered: {
      key: source,
      value: {
        sourceKind: 'seed',
        source,
        depth: 0,
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
      throw new Error(`writing the seeds: ${why}`)
    }
  } finally {
    await lane.close()
  }
}
