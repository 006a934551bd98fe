/**
 * The same site while the crawler is killed with -9 at ten moments, each named stage at least once; then once more to
 * the end. Nothing is lost, and politeness holds across the kills, by the server's own clock.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { readSqlFiles } from '../../connectors/analytics/clickhouse.ts'
import type { FaultPoint } from '../../connectors/faults/types.ts'
import { queriesDir } from '../../topology/analytics.ts'
import { withoutChdb } from '../connectors/analytics/support.ts'
import { faultsOf, judge, staticFacts } from '../web/log.ts'
import { createRandom } from '../web/random.ts'
import type { FaultyCrawl } from './support/faulty-crawl.ts'
import { archiveFiles, reachedServer, readArchive, readOutcomes, serverLog, surplus, tally } from './support/judged.ts'
import { startNode } from './support/process.ts'
import { findPythonDoc } from './support/python-doc.ts'
import { assertTablesAreTheLog, withTables } from './support/tables.ts'
import { walkSite } from './support/walk.ts'
import { findWarcio } from './support/warcio.ts'

const root = resolve(import.meta.dirname, '../..')
const site = findPythonDoc()
const seed = Number(process.env.WEIR_TEST_SEED ?? Date.now() % 1_000_000)
const points: readonly FaultPoint[] = ['visit-committed', 'mid-body', 'warc-written', 'frame-written', 'committed']
/** In the middle of an insert into ClickHouse. */
const sinkPoints: readonly FaultPoint[] = withoutChdb() === false ? ['batch-planned', 'batch-delivered'] : []
const delayMs = 200
const toleranceMs = 5

test(`kill -9 at ten moments loses no page and breaks no delay (seed ${seed})`, {
  skip: site.root === null ? `no python3-doc: ${site.reason}` : false,
}, async (t) => {
  const random = createRandom(seed)
  // Bodies in pieces, so that a kill can hit the middle of one.
  const server = startNode(t, join(root, 'test/web/static-server.ts'), [
    '--root',
    site.root!,
    '--chunk-bytes',
    '65536',
    '--chunk-delay-ms',
    '1',
  ])
  const { port, control } = JSON.parse(await server.ready) as { port: number; control: number }
  const home = `http://127.0.0.1:${port}/`
  const walked = await walkSite(home)
  const before = (await serverLog(control)).length
  const data = mkdtempSync(join(tmpdir(), 'weir-kills-'))
  t.after(() => rmSync(data, { recursive: true, force: true }))
  const run = async (kill: FaultyCrawl['kill']) => {
    const crawl: FaultyCrawl = { data, seed: home, delayMs, kill, analytics: withoutChdb() === false }
    const child = startNode(t, join(root, 'test/integration/support/faulty-crawl.ts'), [JSON.stringify(crawl)])
    const { code, signal } = await child.exit
    return { code, signal, stderr: child.stderr() }
  }

  const others = Array.from({ length: 10 - points.length - sinkPoints.length }, () => random.pick(points))
  const kills = [...points, ...sinkPoints, ...others].map((point) => ({
    point,
    hit: 1 + random.int(point.startsWith('batch') ? 3 : point === 'visit-committed' ? 6 : 25),
  }))
  for (const kill of kills) {
    const { signal, code, stderr } = await run(kill)
    t.diagnostic(`seed ${seed}: killed at ${kill.point}, hit ${kill.hit}`)
    assert.equal(signal, 'SIGKILL', `ended with ${code} before ${kill.point} was passed ${kill.hit} times\n${stderr}`)
  }
  const last = await run(null)
  assert.equal(last.code, 0, last.stderr)

  const log = (await serverLog(control)).slice(before)
  const urls = log.map((r) => `http://127.0.0.1:${port}${r.path}`)
  const { fetched, deadLetters } = await readOutcomes(data)
  const ended = tally(reachedServer(fetched).map((r) => r.value.url))
  const archived = tally(readArchive(data).map((r) => r.url))
  const requested = tally(urls)
  const total = (counts: ReadonlyMap<string, number>) => [...counts.values()].reduce((a, b) => a + b, 0)
  t.diagnostic(
    `walk ${walked.pages.size} pages; server ${log.length} requests, WARC ${total(archived)}, fetched ${total(ended)}`,
  )

  const had = new Set(fetched.filter((r) => r.value.status === 200 && r.value.outcomeKind === 'page').map((r) => r.key))
  assert.deepEqual(
    [...walked.pages].filter((url) => !had.has(url)),
    [],
    'pages lost',
  )
  assert.deepEqual(
    [...had].filter((url) => !walked.pages.has(url) && !walked.others.has(url)),
    [],
    'pages that the walk does not know',
  )
  assert.equal(deadLetters, 0)
  // One host: at most one request was in flight at each kill.
  assert.deepEqual(surplus(ended, archived), [], 'fetched, not archived')
  assert.deepEqual(surplus(archived, requested), [], 'archived, not requested')
  assert.ok(total(requested) - total(ended) <= kills.length, 'requests without an outcome: at most one a kill')
  assert.equal(new Set(fetched.map((r) => r.value.fetchId)).size, fetched.length, 'each fetchId once')

  const verdict = judge(log, staticFacts(home.slice(0, -1), walked.pages), { minDelayMs: delayMs, toleranceMs })
  t.diagnostic(
    `overlaps ${verdict.overlaps.length}, short gaps ${verdict.shortGaps.length}, repeated ${verdict.repeated.length}, missing ${verdict.missing.length}`,
  )
  // A page whose answer was complete when the kill came is asked for again: the one repetition that a kill may cost.
  assert.ok(verdict.repeated.length <= kills.length)
  assert.deepEqual(faultsOf({ ...verdict, repeated: [] }), [])

  await t.test('ClickHouse has each outcome once, and every query runs', { skip: withoutChdb() }, async (t) => {
    await withTables(data, async (analytics) => {
      const rows = await assertTablesAreTheLog(data, analytics)
      const answered =
        "SELECT count(), uniqExact(fetch_id) FROM fetches WHERE outcome_kind IN ('page', 'robots') AND fetch_status > 0"
      const [counts] = (await analytics.query(answered)).rows
      const distinct = new Set(fetched.filter((r) => r.value.status > 0).map((r) => r.value.fetchId)).size
      t.diagnostic(`rows of fetches ${rows}; page and robots with a status ${counts}; distinct fetchIds ${distinct}`)
      assert.deepEqual(counts?.map(Number), [distinct, distinct])
      for (const { name, sql } of readSqlFiles(queriesDir)) {
        const result = await analytics.query(sql)
        if (name === 'politeness-audit') assert.deepEqual(result.rows, [], 'requests that came too early')
      }
    })
  })

  await t.test('warcio check accepts every WARC', (t) => {
    const warcio = findWarcio()
    if (warcio.tool === null) return t.skip(warcio.reason)
    const { ok, problems } = warcio.tool.check(archiveFiles(data))
    assert.ok(ok, problems)
  })
})
