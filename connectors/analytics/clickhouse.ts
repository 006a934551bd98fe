import { type Dirent, readdirSync, readFileSync } from 'node:fs'
import { type ClickHouseClient, ClickHouseError, createClient } from '@clickhouse/client'
import { AnalyticsError, type AnalyticsErrorCode } from './errors.ts'
import { assertReadOnly } from './read-only.ts'
import type { Analytics, AnalyticsAccess, QueryResult } from './types.ts'

export interface ClickHouseOptions extends AnalyticsAccess {
  /** A folder of `.sql` files, one statement each, run in the order of their names. */
  readonly schemaDir: URL
  /** Default 60 s. */
  readonly requestTimeoutMs?: number
}

/** ClickHouse over HTTP: a server, or the embedded engine behind its front. */
export function createClickHouseAnalytics(options: ClickHouseOptions): Analytics {
  const { url, username, password, database, schemaDir, requestTimeoutMs = 60_000 } = options
  const connection = {
    url,
    username,
    password,
    application: 'weir',
    request_timeout: requestTimeoutMs,
    // Errors come as errors; the client's own log would repeat them.
    log: { level: 127 },
  } as const
  const client = createClient({ ...connection, database })

  return {
    async ensureSchema() {
      const outside = createClient(connection)
      await called('making the database', () =>
        command(outside, `CREATE DATABASE IF NOT EXISTS ${quoteName(database)}`),
      ).finally(() => outside.close())
      for (const { name, sql } of readSqlFiles(schemaDir)) {
        await called(`making the table or view of ${name}.sql`, () => command(client, sql))
      }
    },
    async insert(table, rows, token) {
      const [first] = rows
      if (first === undefined) return
      const columns = Object.keys(first)
      await called(
        `inserting ${rows.length} rows into ${table}`,
        () =>
          client.insert({
            table,
            values: rows.map((row) => columns.map((column) => row[column])),
            format: 'JSONCompactEachRow',
            // Named, since columns that only carry a value (EPHEMERAL) are not taken otherwise.
            columns: columns as [string, ...string[]],
            clickhouse_settings: {
              insert_deduplicate: 1,
              insert_deduplication_token: token,
              async_insert: 0,
              // One block for the same rows, whatever the machine.
              input_format_parallel_parsing: 0,
              date_time_input_format: 'best_effort',
            },
          }),
        'row',
      )
    },
    async query(sql) {
      assertReadOnly(sql)
      return called(
        'running SQL',
        async (): Promise<QueryResult> => {
          const result = await client.query({
            query: sql,
            format: 'JSONCompact',
            clickhouse_settings: { output_format_json_quote_64bit_integers: 1, readonly: '2' },
          })
          const { meta, data } = (await result.json()) as unknown as { meta: QueryResult['columns']; data: unknown[][] }
          return { columns: meta, rows: data }
        },
        'query',
      )
    },
    access: async () => ({ url, username, password, database }),
    close: () => client.close(),
  }
}

/** The `.sql` files of a folder, in the order of their names. */
export function readSqlFiles(dir: URL): { name: string; sql: string }[] {
  return readdirSync(dir, { withFileTypes: true })
    .filter((entry: Dirent) => entry.name.endsWith('.sql'))
    .map(({ name }) => ({ name: name.slice(0, -4), sql: readFileSync(new URL(name, dir), 'utf8').trim() }))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
}

async function command(client: ClickHouseClient, query: string): Promise<void> {
  await client.command({ query })
}

async function called<T>(
  doing: string,
  call: () => Promise<T>,
  what: 'row' | 'query' | 'schema' = 'schema',
): Promise<T> {
  try {
    return await call()
  } catch (error) {
    const code = codeOf(error, what)
    throw new AnalyticsError(code, `${doing}: ${messageOf(error)}`, { cause: error })
  }
}

function codeOf(error: unknown, what: 'row' | 'query' | 'schema'): AnalyticsErrorCode {
  if (!(error instanceof ClickHouseError)) return 'unavailable'
  const code = Number(error.code)
  if (busy.has(code)) return 'unavailable'
  if (what === 'query') return readOnlyCodes.has(code) ? 'read-only' : 'query'
  return what === 'row' && aboutContent.has(code) ? 'row-refused' : 'refused'
}

function messageOf(error: unknown): string {
  if (error instanceof ClickHouseError) return `${error.message.trim()} (${error.type ?? error.code})`
  if (error instanceof AggregateError && error.errors[0] instanceof Error) return error.errors[0].message
  return error instanceof Error ? error.message : String(error)
}

/** READONLY. */
const readOnlyCodes = new Set([164])
/**
 * TIMEOUT_EXCEEDED, TOO_MANY_SIMULTANEOUS_QUERIES, SOCKET_TIMEOUT, NETWORK_ERROR, MEMORY_LIMIT_EXCEEDED,
 * TABLE_IS_READ_ONLY, NOT_ENOUGH_SPACE, TOO_MANY_PARTS, QUERY_WAS_CANCELLED, the server's start and stop.
 */
const busy = new Set([159, 202, 209, 210, 241, 242, 243, 252, 394, 236, 1002])
/**
 * CANNOT_PARSE_* (6, 26, 27, 38, 41, 72, 376, 675), CANNOT_READ_ALL_DATA, TYPE_MISMATCH, ILLEGAL_TYPE,
 * ARGUMENT_OUT_OF_BOUND, CANNOT_CONVERT_TYPE, INCORRECT_DATA, TOO_LARGE_STRING_SIZE, CANNOT_INSERT_NULL,
 * DECIMAL_OVERFLOW, VIOLATED_CONSTRAINT, UNKNOWN_ELEMENT_OF_ENUM.
 */
const aboutContent = new Set([6, 26, 27, 33, 38, 41, 43, 53, 69, 70, 72, 117, 131, 349, 376, 407, 469, 675, 691])

function quoteName(name: string): string {
  return `\`${name.replace(/[\\`]/g, '\\$&')}\``
}
