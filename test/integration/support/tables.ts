import assert from 'node:assert/strict'
import { join } from 'node:path'
import type { Analytics } from '../../../connectors/analytics/types.ts'
import { createSystemClock } from '../../../connectors/clock/system.ts'
import { openEmbeddedLog } from '../../../connectors/log/embedded/open.ts'
import { sinkTables } from '../../../processors/sink/sink.ts'
import { openAnalytics } from '../../../topology/analytics.ts'
import { type TopicName, topicName } from '../../../topology/topics.ts'

const partitions = 4

/** The tables of the data directory's own ClickHouse, read by nobody else meanwhile. */
export async function withTables<T>(data: string, use: (analytics: Analytics) => Promise<T>): Promise<T> {
  const analytics = openAnalytics('weir', join(data, 'clickhouse'), undefined)
  try {
    return await use(analytics)
  } finally {
    await analytics.close()
  }
}

/** Every table has exactly the rows that the records of the log make, each once. Gives the rows of `fetches`. */
export async function assertTablesAreTheLog(data: string, analytics: Analytics): Promise<number> {
  const column = async (sql: string) => (await analytics.query(sql)).rows.map(([value]) => String(value))
  const expected = await rowsOfLog(data)
  const of = (table: string, name: string) => expected.get(table)!.map((row) => String(row[name]))

  const fetchIds = of('fetches', 'fetch_id')
  assert.equal(new Set(fetchIds).size, fetchIds.length, 'a fetchId stands for one outcome')
  assert.deepEqual(await column('SELECT fetch_id FROM fetches ORDER BY fetch_id'), fetchIds.sort())
  const decided = expected.get('decisions')!.map((row) => `${row.url} ${row.code} ${row.count} ${row.fetch_id}`)
  const decisions = "SELECT concat(url, ' ', code, ' ', toString(count), ' ', fetch_id) AS x FROM decisions ORDER BY x"
  assert.deepEqual(await column(decisions), decided.sort())

  const latest = new Map<string, string>()
  for (const row of expected.get('page_states')!) latest.set(String(row.url), `${row.url} ${row.sequence} ${row.state}`)
  const states = "SELECT concat(url, ' ', toString(sequence), ' ', state) AS x FROM page_states FINAL ORDER BY x"
  assert.deepEqual(await column(states), [...latest.values()].sort())
  assert.deepEqual(await column('SELECT url FROM parses FINAL ORDER BY url'), [...new Set(of('parses', 'url'))].sort())
  assert.deepEqual(await column('SELECT host FROM hosts FINAL ORDER BY host'), [...new Set(of('hosts', 'host'))].sort())
  assert.deepEqual(await column('SELECT count() FROM pages'), [String(latest.size)])
  return fetchIds.length
}

async function rowsOfLog(data: string) {
  const log = await openEmbeddedLog({ dir: join(data, 'log'), clock: createSystemClock() })
  try {
    const found = new Map<string, { readonly [column: string]: unknown }[]>()
    for (const [topic, { table, rows }] of Object.entries(sinkTables)) {
      const all: { readonly [column: string]: unknown }[] = []
      for (let p = 0; p < partitions; p++) {
        for (let next = 0; ; ) {
          const batch = await log.read(log.partition(topicName('weir', topic as TopicName), p), next, 1 << 20, 'stable')
          if (batch === null) break
          for (let i = 0; i < batch.count; i++) {
            const [offset, timestampMs] = [batch.offset(i), batch.timestamp(i)]
            all.push(...rows({ key: batch.key(i), value: batch.value(i), offset, timestampMs }))
          }
          next = batch.nextOffset
        }
      }
      found.set(table, all)
    }
    return found
  } finally {
    await log.close()
  }
}
