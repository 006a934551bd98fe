/** What a finished crawl left behind, read from its log and archive, and what the server saw of it. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { headerOf, readWarcFile } from '../../../connectors/archive/warc-reader.ts'
import { createSystemClock } from '../../../connectors/clock/system.ts'
import { openEmbeddedLog } from '../../../connectors/log/embedded/open.ts'
import { topicSerde } from '../../../schemas/codec.ts'
import type { Fetched } from '../../../schemas/types.ts'
import { type TopicName, topicName } from '../../../topology/topics.ts'
import type { WebRequest } from '../../web/log.ts'

const partitions = 4

export interface FetchedRecord {
  readonly key: string
  readonly value: Fetched
}

/** Every record of `fetched`, and how many records the dead letters have. */
export async function readOutcomes(
  data: string,
  crawl = 'weir',
): Promise<{ fetched: FetchedRecord[]; deadLetters: number }> {
  const log = await openEmbeddedLog({ dir: join(data, 'log'), clock: createSystemClock() })
  try {
    const serde = topicSerde<Fetched>('fetched')
    const fetched: FetchedRecord[] = []
    let deadLetters = 0
    const each = async (topic: TopicName, take: (key: Uint8Array | null, value: Uint8Array | null) => void) => {
      for (let p = 0; p < partitions; p++) {
        for (let next = 0; ; ) {
          const batch = await log.read(log.partition(topicName(crawl, topic), p), next, 1 << 20, 'stable')
          if (batch === null) break
          for (let i = 0; i < batch.count; i++) take(batch.key(i), batch.value(i))
          next = batch.nextOffset
        }
      }
    }
    await each('fetched', (key, value) => {
      fetched.push({ key: Buffer.from(key!).toString(), value: serde.deserialize(value!) })
    })
    await each('dead-letters', () => deadLetters++)
    return { fetched, deadLetters }
  } finally {
    await log.close()
  }
}

/** Records of kind page and robots whose request reached the server. */
export function reachedServer(records: readonly FetchedRecord[]): FetchedRecord[] {
  return records.filter(({ value }) => ['page', 'robots'].includes(value.outcomeKind) && value.startedAt > 0)
}

export interface ArchivedExchange {
  readonly url: string
  readonly type: 'response' | 'revisit'
  readonly file: string
  readonly offset: number
}

export function archiveFiles(data: string): string[] {
  const dir = join(data, 'archive')
  return readdirSync(dir)
    .filter((name) => name.endsWith('.warc.gz'))
    .sort()
    .map((name) => join(dir, name))
}

/** Response and revisit records of every WARC. */
export function readArchive(data: string): ArchivedExchange[] {
  const found: ArchivedExchange[] = []
  for (const path of archiveFiles(data)) {
    for (const record of readWarcFile(path)) {
      if (record.type !== 'response' && record.type !== 'revisit') continue
      const url = headerOf(record.headers, 'warc-target-uri') ?? ''
      found.push({ url, type: record.type, file: path.slice(path.lastIndexOf('/') + 1), offset: record.offset })
    }
  }
  return found
}

/** The server's own log, from its control port. */
export async function serverLog(controlPort: number): Promise<WebRequest[]> {
  const response = await fetch(`http://127.0.0.1:${controlPort}/__web/log`)
  const text = await response.text()
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as WebRequest)
}

/** How often each value occurs. */
export function tally(values: Iterable<string>): Map<string, number> {
  const counts = new Map<string, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  return counts
}

/** What `a` has more of than `b`, with how many. */
export function surplus(a: ReadonlyMap<string, number>, b: ReadonlyMap<string, number>): [string, number][] {
  return [...a].map(([value, n]): [string, number] => [value, n - (b.get(value) ?? 0)]).filter(([, n]) => n > 0)
}
