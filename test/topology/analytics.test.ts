import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createChdbAnalytics } from '../../connectors/analytics/chdb/chdb.ts'
import type { Analytics } from '../../connectors/analytics/types.ts'
import { createSystemClock } from '../../connectors/clock/system.ts'
import { createRecordBatch } from '../../connectors/log/batch.ts'
import { createMemoryLog, type MemoryLog } from '../../connectors/log/memory.ts'
import { stringSerde, topicSerde } from '../../schemas/codec.ts'
import { clickHouseServer, schemaDir, startSink } from '../../topology/analytics.ts'
import { flagOf, resolveSettings } from '../../topology/settings.ts'
import { topicName, topicSpecs } from '../../topology/topics.ts'
import { withoutChdb } from '../connectors/analytics/support.ts'
import { fetched } from '../processors/sink/records.ts'

const clock = createSystemClock()

test('the server is what the environment says; secrets may lie in files', (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'weir-env-'))
  t.after(() => rmSync(dir, { recursive: true, force: true }))
  const file = join(dir, 'password')
  writeFileSync(file, 'secret\n')
  assert.equal(clickHouseServer({ CLICKHOUSE_USER: 'me' }, 'weir'), undefined)
  assert.deepEqual(clickHouseServer({ CLICKHOUSE_URL: 'https://ch.example:8443', CLICKHOUSE_PASSWORD: '' }, 'news'), {
    url: 'https://ch.example:8443',
    username: 'default',
    password: '',
    database: 'news',
  })
  assert.deepEqual(
    clickHouseServer(
      {
        CLICKHOUSE_URL: 'http://ch',
        CLICKHOUSE_USER: 'me',
        CLICKHOUSE_PASSWORD_FILE: file,
        CLICKHOUSE_DATABASE: 'other',
      },
      'news',
    ),
    { url: 'http://ch', username: 'me', password: 'secret', database: 'other' },
  )
  for (const wrong of [
    { CLICKHOUSE_URL: 'ch:9000' },
    { CLICKHOUSE_URL: 'http://ch', CLICKHOUSE_PASSWORD: 'a', CLICKHOUSE_PASSWORD_FILE: file },
    { CLICKHOUSE_URL: 'http://ch', CLICKHOUSE_PASSWORD_FILE: join(dir, 'none') },
  ]) {
    assert.throws(() => clickHouseServer(wrong, 'weir'), { exitCode: 2 })
  }
})

test('without chDB a sink says once that analytics are off and how to get them, and holds nobody up', async (t) => {
  const { notices, sink } = await setUp(t, (dir) => ({
    ...createChdbAnalytics({
      dir,
      database: 'weir',
      schemaDir,
      newPassword: () => 'x',
      enginePackage: 'chdb-that-nobody-has',
    }),
  }))
  await sink.drain(10_000)
  assert.equal(sink.lag(), 0)
  await sink.close()
  assert.equal(notices.length, 1, notices.join('\n'))
  assert.match(notices[0]!, /^analytics are off, the crawl goes on .*npm install chdb/)
})

test('a row that ClickHouse refuses goes to the dead letters, its neighbours into the table', {
  skip: withoutChdb(),
}, async (t) => {
  const { notices, sink, log, analytics } = await setUp(
    t,
    (dir) => createChdbAnalytics({ dir, database: 'weir', schemaDir, newPassword: () => 'x' }),
    // No UInt16.
    [fetched({ fetchId: 'a' }), fetched({ fetchId: 'b', status: -7 }), fetched({ fetchId: 'c' })],
  )
  await sink.drain(10_000)
  const { rows } = await analytics.query('SELECT fetch_id FROM fetches ORDER BY fetch_id')
  assert.deepEqual(rows, [['a'], ['c']])
  await sink.close()
  assert.equal([...log.records(topicName('weir', 'dead-letters'), 0)].length, 1)
  assert.match(notices.join('\n'), /^a record of weir\.fetched \(partition 0, offset 1\) cannot be a row/)
})

test('ClickHouse is on unless a flag, the environment or the file turns it off', () => {
  assert.equal(flagOf('analytics'), '--no-analytics')
  assert.equal(resolveSettings({}, {}, undefined).analytics, true)
  assert.equal(resolveSettings({}, { WEIR_ANALYTICS: 'false' }, undefined).analytics, false)
  assert.equal(resolveSettings({ analytics: false }, { WEIR_ANALYTICS: 'true' }, undefined).analytics, false)
})

async function setUp(
  t: { after(fn: () => void): void },
  open: (dir: string) => Analytics,
  records = [fetched({})],
): Promise<{
  notices: string[]
  sink: ReturnType<typeof startSink>
  log: MemoryLog
  analytics: Analytics
}> {
  const dir = mkdtempSync(join(tmpdir(), 'weir-sink-'))
  t.after(() => rmSync(dir, { recursive: true, force: true }))
  const log = createMemoryLog({ clock })
  const topics = topicSpecs('weir', 1)
  await log.ensure(topics)
  const batch = createRecordBatch()
  const serde = topicSerde<object>('fetched')
  for (const record of records) batch.add(stringSerde.serialize('https://www.shop.co.uk/'), serde.serialize(record), 1)
  const lane = await log.lane('writer')
  const unit = lane.begin('atomic')
  unit.append(log.partition(topicName('weir', 'fetched'), 0), batch)
  await unit.commit([])
  const notices: string[] = []
  const analytics = open(join(dir, 'clickhouse'))
  const onNotice = (text: string) => void notices.push(text)
  return { notices, log, analytics, sink: startSink({ crawl: 'weir', log, topics, clock, analytics, onNotice }) }
}
