import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { createChdbAnalytics } from '../../../connectors/analytics/chdb/chdb.ts'
import { createClickHouseAnalytics } from '../../../connectors/analytics/clickhouse.ts'
import type { Analytics } from '../../../connectors/analytics/types.ts'
import { analyticsSuite, isError } from '../../suites/analytics.ts'
import { withoutChdb } from './support.ts'

const skip = withoutChdb()
const root = mkdtempSync(join(tmpdir(), 'weir-chdb-'))
let opened = 0

function open(dir: string, schemaDir: URL): Analytics {
  return createChdbAnalytics({ dir, database: 'weir', schemaDir, newPassword: () => `secret-${opened++}` })
}

after(() => rmSync(root, { recursive: true, force: true }))

if (skip === false)
  analyticsSuite('analytics: chDB behind its front', async (schema) => open(join(root, 'suite'), schema))
else test('analytics: chDB behind its front', { skip }, () => {})

describe('chDB behind its front', { skip }, () => {
  const empty = mkdtempSync(join(tmpdir(), 'weir-chdb-schema-'))
  const schemaDir = pathToFileURL(`${empty}/`)
  const dir = join(root, 'own')
  let analytics: Analytics

  before(async () => {
    analytics = open(dir, schemaDir)
    await analytics.ensureSchema()
  })
  after(async () => {
    await analytics.close()
    rmSync(empty, { recursive: true, force: true })
  })

  test('whoever has no password is refused, in front of everything', async () => {
    const access = await analytics.access()
    const stranger = createClickHouseAnalytics({ ...access, password: 'guess', schemaDir })
    await assert.rejects(stranger.query('SELECT 1'), /Authentication failed/)
    await stranger.close()
    const friend = createClickHouseAnalytics({ ...access, schemaDir })
    assert.deepEqual((await friend.query('SELECT 1 AS x')).rows, [[1]])
    await friend.close()
  })

  test('the front itself refuses what writes files although it is read-only', async () => {
    const { url, username, password } = await analytics.access()
    const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
    const file = join(root, 'out.csv')
    const response = await fetch(`${url}/?readonly=2`, {
      method: 'POST',
      headers: { authorization },
      body: `SELECT 1 INTO OUTFILE '${file}'`,
    })
    assert.notEqual(response.status, 200)
    assert.match(await response.text(), /OUTFILE/)
  })

  test('a second one on the same directory waits until the first is gone, then sees its data', async () => {
    const own = join(root, 'two')
    const first = open(own, schemaDir)
    await first.ensureSchema()
    const second = open(own, schemaDir)
    const answer = second.query('SHOW DATABASES')
    await first.close()
    assert.ok((await answer).rows.some(([name]) => name === 'weir'))
    await second.close()
  })

  test('a directory that stays in use is told, after the wait', async () => {
    const impatient = createChdbAnalytics({
      dir,
      database: 'weir',
      schemaDir,
      newPassword: () => 'x',
      lockWaitMs: 100,
    })
    await assert.rejects(impatient.query('SELECT 1'), isError('unavailable'))
    await impatient.close()
    assert.deepEqual((await analytics.query('SELECT 1')).rows, [[1]])
  })

  test('a child that is killed is started again, and what was inserted is there', async () => {
    const pids: number[] = []
    const own = mkdtempSync(join(tmpdir(), 'weir-chdb-schema-'))
    writeFileSync(join(own, 't.sql'), 'CREATE TABLE IF NOT EXISTS t (a Int32) ENGINE = MergeTree ORDER BY a')
    const killed = createChdbAnalytics({
      dir: join(root, 'killed'),
      database: 'weir',
      schemaDir: pathToFileURL(`${own}/`),
      newPassword: () => 'x',
      onStarted: (pid) => pids.push(pid),
    })
    await killed.ensureSchema()
    await killed.insert('t', [{ a: 7 }], 'one')
    process.kill(pids[0]!, 'SIGKILL')
    // The calls that find it dead fail; once its end is known the next one has a new child.
    let found: unknown
    for (let n = 0; n < 100 && found === undefined; n++) {
      found = await killed.query('SELECT a FROM t').then(
        ({ rows }) => rows,
        () => new Promise((resolve) => setTimeout(resolve, 20)),
      )
    }
    assert.deepEqual(found, [[7]])
    assert.equal(pids.length, 2)
    await killed.close()
    rmSync(own, { recursive: true, force: true })
  })

  test('without the package it says how to get it', async () => {
    const missing = createChdbAnalytics({
      dir: join(root, 'missing'),
      database: 'weir',
      schemaDir,
      newPassword: () => 'x',
      enginePackage: 'chdb-that-nobody-has',
    })
    await assert.rejects(missing.ensureSchema(), (error) => {
      return isError('not-installed')(error) && /npm install chdb/.test((error as Error).message)
    })
    await missing.close()
  })

  test('one that is closed while it waits for the directory does not wait on', async () => {
    const waiting = open(dir, schemaDir)
    const answer = assert.rejects(waiting.query('SELECT 1'), isError('unavailable'))
    const sinceMs = performance.now()
    await new Promise((resolve) => setTimeout(resolve, 300))
    await waiting.close()
    await answer
    assert.ok(performance.now() - sinceMs < 5_000)
  })

  test('what is closed answers nothing', async () => {
    const closed = open(join(root, 'closed'), schemaDir)
    await closed.close()
    await assert.rejects(closed.query('SELECT 1'), isError('closed'))
  })
})
