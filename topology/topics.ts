import type { TopicSpec } from '../connectors/log/types.ts'

/** The topic catalogue. Nothing is taken from the log's defaults. */
const dayMs = 86_400_000
const replayWindowMs = 7 * dayMs

export type TopicName =
  | 'discovered-urls'
  | 'canonicalized'
  | 'unseen'
  | 'host-scheduled'
  | 'fetched'
  | 'parsed'
  | 'page-states'
  | 'host-policies'
  | 'decisions'
  | 'controls'
  | 'dead-letters'

export interface TopicDefinition {
  readonly name: TopicName
  /** What the key is, for readers. */
  readonly key: string
  readonly partitionBy: 'source' | 'url' | 'site' | 'gate' | 'all' | 'source-partition'
  /** `.avsc` in schemas/; null = raw bytes. */
  readonly schema: string | null
  readonly cleanup: TopicSpec['cleanup']
  readonly retentionMs?: number
  readonly compactionLagMs?: number
  readonly maxRecordBytes: number
}

const kib = 1024
export const topics: readonly TopicDefinition[] = [
  {
    name: 'discovered-urls',
    key: 'source',
    partitionBy: 'source',
    schema: 'discovered-urls',
    cleanup: 'compact',
    compactionLagMs: replayWindowMs,
    maxRecordBytes: 512 * kib,
  },
  {
    name: 'canonicalized',
    key: 'canonical URL',
    partitionBy: 'url',
    schema: 'canonicalized',
    cleanup: 'compact,delete',
    retentionMs: 14 * dayMs,
    compactionLagMs: replayWindowMs,
    maxRecordBytes: 16 * kib,
  },
  {
    name: 'unseen',
    key: 'canonical URL',
    partitionBy: 'site',
    schema: 'unseen',
    cleanup: 'compact',
    compactionLagMs: replayWindowMs,
    maxRecordBytes: 16 * kib,
  },
  {
    name: 'host-scheduled',
    key: 'host',
    partitionBy: 'gate',
    schema: 'host-scheduled',
    cleanup: 'compact',
    maxRecordBytes: 4096 * kib,
  },
  {
    name: 'fetched',
    key: 'canonical URL, robots:URL, dns:HOST or visit:HOST',
    partitionBy: 'site',
    schema: 'fetched',
    cleanup: 'compact',
    compactionLagMs: replayWindowMs,
    maxRecordBytes: 1024 * kib,
  },
  {
    name: 'parsed',
    key: 'canonical URL',
    partitionBy: 'site',
    schema: 'parsed',
    cleanup: 'compact',
    compactionLagMs: replayWindowMs,
    maxRecordBytes: 1024 * kib,
  },
  {
    name: 'page-states',
    key: 'canonical URL',
    partitionBy: 'site',
    schema: 'page-states',
    cleanup: 'compact',
    compactionLagMs: replayWindowMs,
    maxRecordBytes: 16 * kib,
  },
  {
    name: 'host-policies',
    key: 'host',
    partitionBy: 'site',
    schema: 'host-policies',
    cleanup: 'compact',
    maxRecordBytes: 1024 * kib,
  },
  {
    name: 'decisions',
    key: 'canonical URL or source page',
    partitionBy: 'site',
    schema: 'decisions',
    cleanup: 'delete',
    retentionMs: 30 * dayMs,
    maxRecordBytes: 64 * kib,
  },
  {
    name: 'controls',
    key: 'scope, scope-host:HOST',
    partitionBy: 'all',
    schema: 'controls',
    cleanup: 'compact',
    maxRecordBytes: 16 * kib,
  },
  {
    name: 'dead-letters',
    key: "the source record's",
    partitionBy: 'source-partition',
    schema: null,
    cleanup: 'delete',
    maxRecordBytes: 8192 * kib,
  },
]

/** Topic name as the log knows it: `<crawl>.<name>`, so that several crawls can share a cluster. */
export function topicName(crawl: string, name: TopicName): string {
  return `${crawl}.${name}`
}

export function topicSpecs(crawl: string, partitions: number): TopicSpec[] {
  return topics.map((t) => ({
    name: topicName(crawl, t.name),
    partitions,
    cleanup: t.cleanup,
    ...(t.retentionMs === undefined ? {} : { retentionMs: t.retentionMs }),
    ...(t.compactionLagMs === undefined ? {} : { compactionLagMs: t.compactionLagMs }),
    maxRecordBytes: t.maxRecordBytes,
  }))
}
