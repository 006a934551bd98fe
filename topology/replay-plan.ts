import type { ArchiveRef } from '../connectors/archive/types.ts'
import type { Log } from '../connectors/log/types.ts'
import { stringSerde, topicSerde } from '../schemas/codec.ts'
import type { Fetched, Parsed, Truncation } from '../schemas/types.ts'
import { type TopicName, topicName } from './topics.ts'

/** A page to parse again: its last stored body, and the response that it last came with. */
export interface StoredPage {
  readonly key: string
  readonly url: string
  readonly host: string
  readonly fetchId: string
  readonly fetchedAt: number
  readonly archive: ArchiveRef
  /** Decoded, as it was parsed at first. */
  readonly bodyBytes: number
  readonly truncated: Truncation
}

export interface PlanOptions {
  readonly log: Log
  readonly crawl: string
  readonly partition: number
  /** Pages of this host, or whose key begins so. */
  readonly only: { readonly host?: string; readonly urlPrefix?: string }
  /** Of `parsed`: a page whose last record has it needs no work. Null = every page does. */
  readonly parseVersion: number | null
}

/**
 * The pages of one partition whose body is stored, in the order in which the archive has them, and how many of them
 * need no work. Memory: some 500 bytes a page of the partition.
 */
export async function planPartition(options: PlanOptions): Promise<{ pages: StoredPage[]; done: number }> {
  const { log, crawl, partition, only, parseVersion } = options
  const stored = new Map<string, StoredPage & { readonly digest: Uint8Array | null }>()
  for await (const { key, value } of recordsOf<Fetched>(log, crawl, 'fetched', partition)) {
    if (only.urlPrefix !== undefined && !key.startsWith(only.urlPrefix)) continue
    if (value === null) {
      stored.delete(key)
      continue
    }
    if (only.host !== undefined && value.host !== only.host) continue
    if (!holdsPage(value)) continue
    const { url, host, fetchId, bodyBytes, truncated } = value
    const seen = { key, url, host, fetchId, fetchedAt: value.startedAt }
    if (!value.revisit) {
      stored.set(key, { ...seen, archive: value.archive, bodyBytes, truncated, digest: value.payloadDigest })
      continue
    }
    // The same bytes came again: they are stored with the record that it refers to.
    const before = stored.get(key)
    if (before !== undefined && equal(before.digest, value.payloadDigest)) stored.set(key, { ...before, ...seen })
  }
  const total = stored.size
  if (parseVersion !== null && total > 0) {
    const last = new Map<string, string | null>()
    for await (const { key, value } of recordsOf<Parsed>(log, crawl, 'parsed', partition)) {
      if (stored.has(key)) last.set(key, value?.parseVersion === parseVersion ? value.fetchId : null)
    }
    for (const [key, { fetchId }] of stored) if (last.get(key) === fetchId) stored.delete(key)
  }
  const pages = [...stored.values()].map(({ digest: _, ...page }) => page)
  pages.sort((a, b) =>
    a.archive.file === b.archive.file ? a.archive.offset - b.archive.offset : a.archive.file < b.archive.file ? -1 : 1,
  )
  return { pages, done: total - pages.length }
}

/** The last `parsed` record of each of these keys of one partition. */
export async function lastParsed(
  log: Log,
  crawl: string,
  partition: number,
  keys: ReadonlySet<string>,
): Promise<Map<string, Parsed>> {
  const last = new Map<string, Parsed>()
  if (keys.size === 0) return last
  for await (const { key, value } of recordsOf<Parsed>(log, crawl, 'parsed', partition, keys)) {
    if (value === null) last.delete(key)
    else last.set(key, value)
  }
  return last
}

/** What was parsed when it came: a whole answer of a page, with a body. */
function holdsPage(value: Fetched): value is Fetched & { archive: ArchiveRef } {
  return (
    value.outcomeKind === 'page' &&
    value.entryKind === 'page' &&
    value.archive !== null &&
    (value.status === 200 || value.status === 203) &&
    value.truncated !== 'type' &&
    value.bodyBytes > 0
  )
}

function equal(a: Uint8Array | null, b: Uint8Array | null): boolean {
  return a !== null && b !== null && Buffer.compare(a, b) === 0
}

async function* recordsOf<V>(
  log: Log,
  crawl: string,
  topic: TopicName,
  partition: number,
  keys?: ReadonlySet<string>,
): AsyncGenerator<{ key: string; value: V | null }> {
  const serde = topicSerde<V>(topic)
  const from = log.partition(topicName(crawl, topic), partition)
  for (let next = 0; ; ) {
    const batch = await log.read(from, next, 1 << 20, 'stable')
    if (batch === null) return
    for (let i = 0; i < batch.count; i++) {
      const keyBytes = batch.key(i)
      if (keyBytes === null) continue
      const bytes = batch.value(i)
      let record: { key: string; value: V | null }
      try {
        const key = stringSerde.deserialize(keyBytes)
        if (keys?.has(key) === false) continue
        record = { key, value: bytes === null ? null : serde.deserialize(bytes) }
      } catch {
        // Nobody can read it; whoever processes the topic has it in its dead letters.
        continue
      }
      yield record
    }
    next = batch.nextOffset
  }
}
