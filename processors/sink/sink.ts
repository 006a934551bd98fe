import { AnalyticsError } from '../../connectors/analytics/errors.ts'
import type { Analytics, Row } from '../../connectors/analytics/types.ts'
import { stringSerde, topicSerde } from '../../schemas/codec.ts'
import type { Decision, Fetched, HostPolicy, PageState, Parsed } from '../../schemas/types.ts'
import { decisionsRows } from './decisions.ts'
import { fetchesRow } from './fetches.ts'
import { hostsRow } from './hosts.ts'
import { pageStatesRow } from './page-states.ts'
import { parsesRow } from './parses.ts'

/** A record as it lies in the log. */
export interface SinkRecord {
  readonly key: Uint8Array | null
  readonly value: Uint8Array | null
  readonly offset: number
  readonly timestampMs: number
}

/** What one input topic becomes. */
export interface SinkTable {
  readonly table: string
  /** Pure. No rows for a tombstone. Throws on what it cannot read. */
  rows(record: SinkRecord): readonly Row[]
}

export type SinkTopic = 'fetched' | 'parsed' | 'page-states' | 'host-policies' | 'decisions'

export const sinkTables: { readonly [topic in SinkTopic]: SinkTable } = {
  fetched: table<Fetched>('fetched', 'fetches', (key, value) => [fetchesRow(key, value)]),
  parsed: table<Parsed>('parsed', 'parses', (key, value) => [parsesRow(key, value)]),
  'page-states': table<PageState>('page-states', 'page_states', (key, value) => [pageStatesRow(key, value)]),
  'host-policies': table<HostPolicy>('host-policies', 'hosts', (key, value, { offset, timestampMs }) => [
    hostsRow(key, value, offset, timestampMs),
  ]),
  decisions: table<Decision>('decisions', 'decisions', decisionsRows),
}

/** The rows of one record, which are refused together. */
export interface RowsOf {
  readonly offset: number
  readonly rows: readonly Row[]
}
export interface RefusedRecord {
  readonly offset: number
  readonly error: AnalyticsError
}

/**
 * Inserts the rows of a batch; resolves with the records whose content is refused, when all others are in the table.
 * Repeated with the same token and records it changes nothing. Rejects with AnalyticsError when ClickHouse cannot take
 * rows now.
 */
export async function insertBatch(
  analytics: Analytics,
  table: string,
  records: readonly RowsOf[],
  token: string,
): Promise<RefusedRecord[]> {
  const rows = records.flatMap((record) => record.rows)
  try {
    if (rows.length > 0) await analytics.insert(table, rows, token)
    return []
  } catch (error) {
    if (!(error instanceof AnalyticsError) || error.code !== 'row-refused') throw error
    if (records.length === 1) return [{ offset: records[0]!.offset, error }]
    // Halves, each with a token of its own: a repeat after a crash is halved in the same way.
    const middle = records.length >> 1
    const left = await insertBatch(analytics, table, records.slice(0, middle), `${token}a`)
    return [...left, ...(await insertBatch(analytics, table, records.slice(middle), `${token}b`))]
  }
}

/**
 * Makes the tables and gives the generation of this sink's rows in them: `known` are those that the log's positions
 * name. An empty database gets a new one, so that all of the log is inserted again. Throws AnalyticsError `foreign`
 * when the database is another log's.
 */
export async function openGeneration(
  analytics: Analytics,
  applicationId: string,
  known: ReadonlySet<string>,
  newGeneration: () => string,
): Promise<string> {
  await analytics.ensureSchema()
  const found = await analytics.query('SELECT application_id, generation FROM sinks')
  const own = found.rows.find(([id]) => id === applicationId)?.[1]
  if (typeof own === 'string' && known.has(own)) return own
  const tables = Object.values(sinkTables).map(({ table }) => `SELECT count() AS n FROM ${table}`)
  const { rows } = await analytics.query(`SELECT sum(n) FROM (${tables.join(' UNION ALL ')})`)
  const { database } = await analytics.access()
  if (Number(rows[0]![0]) > 0) {
    throw new AnalyticsError(
      'foreign',
      `opening the ClickHouse database ${database}: its rows come from another log than this crawl's; drop the database, or give another one (CLICKHOUSE_DATABASE)`,
    )
  }
  if (typeof own === 'string') return own
  const generation = newGeneration()
  await analytics.insert('sinks', [{ application_id: applicationId, generation }], `${applicationId}:${generation}`)
  return generation
}

function table<V>(
  topic: SinkTopic,
  name: string,
  rowsOf: (key: string, value: V, record: SinkRecord) => readonly Row[],
): SinkTable {
  const serde = topicSerde<V>(topic)
  return {
    table: name,
    rows(record) {
      if (record.key === null || record.value === null) return []
      return rowsOf(stringSerde.deserialize(record.key), serde.deserialize(record.value), record)
    },
  }
}
