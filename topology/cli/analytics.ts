import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createClickHouseAnalytics } from '../../connectors/analytics/clickhouse.ts'
import { AnalyticsError } from '../../connectors/analytics/errors.ts'
import type { Analytics, AnalyticsAccess, QueryResult } from '../../connectors/analytics/types.ts'
import { clickHouseServer, openAnalytics, schemaDir } from '../analytics.ts'
import { callControl } from '../control.ts'
import { openDataDirectory } from '../data-directory.ts'
import { CommandError } from '../errors.ts'
import type { Settings } from '../settings.ts'
import { type Output, visible } from './output.ts'

/**
 * Runs SQL where the crawl's rows are: in the ClickHouse of the process that runs the crawl; when none does, on the
 * server of the environment, or in the data directory's own. Throws CommandError: exit code 2 for SQL that could write.
 */
export async function runSql(settings: Settings, sql: string): Promise<QueryResult> {
  const analytics = await openForReading(settings)
  try {
    return await analytics.query(sql)
  } catch (error) {
    if (!(error instanceof AnalyticsError)) throw error
    throw new CommandError(error.code, error.code === 'read-only' ? 2 : 1, error.message, { cause: error })
  } finally {
    await analytics.close()
  }
}

async function openForReading(settings: Settings): Promise<Analytics> {
  const running = await callControl(join(settings.data, 'control.json'), 'analytics', '')
  if (running !== undefined) {
    return createClickHouseAnalytics({ ...(running.value as AnalyticsAccess), schemaDir })
  }
  // Not locked: a crawl may begin meanwhile, its ClickHouse then waits for this one.
  const directory = openDataDirectory({ dir: settings.data, crawl: settings.crawl ?? undefined, lock: false })
  const { crawl } = directory.crawl
  const server = clickHouseServer(process.env, crawl)
  const dir = join(directory.dir, 'clickhouse')
  if (server === undefined && !existsSync(dir)) {
    throw new CommandError(
      'no-analytics',
      1,
      `opening ${dir}: there is none; a crawl makes it, unless it has --no-analytics or chdb is not installed`,
    )
  }
  return openAnalytics(crawl, dir, server)
}

/** A table with a line of names, or one JSON object a line: 64-bit integers are numbers where JavaScript has them. */
export function printResult(output: Output, { columns, rows }: QueryResult, asJson: boolean): void {
  if (asJson) {
    for (const row of rows) {
      const cells = columns.map(({ name, type }, i) => [name, isInteger64(type) ? exact(row[i]) : row[i]])
      output.data(JSON.stringify(Object.fromEntries(cells)))
    }
    return
  }
  if (rows.length === 0) output.message('no rows')
  const texts = [columns.map((c) => c.name), ...rows.map((row) => row.map(cellText))]
  const widths = columns.map((_, i) => Math.min(maxWidth, Math.max(...texts.map((row) => row[i]!.length))))
  const isRight = columns.map(({ type }) => /^(Nullable\()?(U?Int|Float|Decimal)/.test(type))
  for (const row of texts) {
    const cells = row.map((text, i) => (isRight[i] ? text.padStart(widths[i]!) : text.padEnd(widths[i]!)))
    output.data(cells.join('  ').trimEnd())
  }
}

const maxWidth = 100

function cellText(value: unknown): string {
  const text = value === null ? 'NULL' : typeof value === 'string' ? value : JSON.stringify(value)
  return visible(text).replace(/\s+/g, ' ')
}

function isInteger64(type: string): boolean {
  return /^(Nullable\()?U?Int64\)?$/.test(type)
}

function exact(value: unknown): unknown {
  const n = Number(value)
  return value !== null && Number.isSafeInteger(n) ? n : value
}
