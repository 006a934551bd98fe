import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { createChdbAnalytics } from '../../../connectors/analytics/chdb/chdb.ts'
import { readSqlFiles } from '../../../connectors/analytics/clickhouse.ts'
import type { Analytics, Row } from '../../../connectors/analytics/types.ts'
import { decisionsRows } from '../../../processors/sink/decisions.ts'
import { fetchesRow } from '../../../processors/sink/fetches.ts'
import { hostsRow } from '../../../processors/sink/hosts.ts'
import { pageStatesRow } from '../../../processors/sink/page-states.ts'
import { parsesRow } from '../../../processors/sink/parses.ts'
import type { Decision, Fetched, HostPolicy, OriginPolicy, PageState } from '../../../schemas/types.ts'
import { queriesDir, schemaDir } from '../../../topology/analytics.ts'
import { withoutChdb } from '../../connectors/analytics/support.ts'
import { fetched, pageState, parsed } from './records.ts'

const skip = withoutChdb()
const hourMs = 3_600_000
const nowMs = Math.floor(Date.now() / 1000) * 1000
/** A minute that does not end while a host is asked. */
const startMs = Math.floor((nowMs - 2 * hourMs) / 60_000) * 60_000

const same = Buffer.alloc(16, 1)
const simhash = (value: bigint) => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(value)
  return bytes
}
const s = 0xf0f0_f0f0_f0f0_f0f0n

interface Page {
  readonly url: string
  readonly state: Partial<PageState>
  readonly tokens?: number
}
const known = (ageHours: number, nextHours: number, contentHash: Buffer, sim: bigint): Partial<PageState> => ({
  sequence: 2,
  state: 'known',
  reason: 'ok',
  httpStatus: 200,
  lastCrawledAt: nowMs - ageHours * hourMs,
  next: nowMs + nextHours * hourMs,
  contentHash,
  simhash: simhash(sim),
})
const pages: Page[] = [
  { url: 'http://a.example/1', state: { ...known(1, 1, same, s), changeCount: 1 }, tokens: 100 },
  { url: 'http://a.example/2', state: known(2, -1, same, s), tokens: 100 },
  // Two bits away.
  { url: 'http://a.example/3', state: known(3, 1, Buffer.alloc(16, 3), s ^ 3n), tokens: 100 },
  { url: 'http://b.example/1', state: known(10, 1, same, s), tokens: 100 },
  // Three bits away, but too short to tell.
  { url: 'http://b.example/2', state: known(10, 1, Buffer.alloc(16, 5), s ^ 7n), tokens: 10 },
  { url: 'http://a.example/6', state: known(1, 1, Buffer.alloc(16, 9), 0x0123_4567_89ab_cdefn), tokens: 60 },
  { url: 'http://a.example/1', state: { sequence: 1, state: 'queued' } },
  { url: 'http://b.example/3', state: { state: 'queued' } },
  { url: 'https://c.example/', state: { state: 'queued' } },
  { url: 'http://c.example/', state: { state: 'queued' } },
  { url: 'http://a.example/4', state: { state: 'parked', reason: 'depth' } },
  { url: 'http://a.example/5', state: { state: 'known', reason: 'missing', httpStatus: 404, next: nowMs + hourMs } },
]

const policy = (some: Partial<HostPolicy>): HostPolicy => ({
  site: 'a.example',
  address: '203.0.113.7',
  gate: 'a:203.0.113.7',
  delayMs: 1000,
  delayReason: 'minimum',
  backOffUntil: null,
  backOffReason: null,
  origins: [],
  ...some,
})
const unreachable: OriginPolicy = {
  origin: 'https://c.example',
  robotsVersion: 'unreachable',
  verdict: 'disallow-all',
  httpStatus: 503,
  fetchedAt: 0,
  expiresAt: 0,
  crawlDelayMs: null,
  rules: [],
}
const hosts: [string, HostPolicy][] = [
  ['a.example', policy({ delayMs: 5000 })],
  // The later record is the one that holds.
  ['a.example', policy({})],
  [
    'b.example',
    policy({
      site: 'b.example',
      delayMs: 2000,
      delayReason: 'crawl-delay',
      backOffUntil: nowMs + hourMs,
      backOffReason: 'back-off: 503 with Retry-After: 3600',
    }),
  ],
  ['c.example', policy({ site: 'c.example', origins: [unreachable] })],
]

const answer = (id: string, host: string, atMs: number, tookMs: number, some: Partial<Fetched>): [string, Fetched] => [
  some.outcomeKind === undefined ? `http://${host}/${id.slice(1)}` : `${some.outcomeKind}:${host}`,
  fetched({
    fetchId: `${host}-${id}`,
    host,
    site: host,
    url: `http://${host}/${id.slice(1)}`,
    startedAt: startMs + atMs,
    endedAt: startMs + atMs + tookMs,
    archive: { file: 'w', offset: 0, length: 1 },
    ...some,
  }),
]
const fetches = [
  answer('r', 'a.example', 0, 50, { outcomeKind: 'robots', status: 404, bodyBytes: 1, rawBytes: 125_000 }),
  answer('p1', 'a.example', 1050, 100, { bodyBytes: 5000, rawBytes: 1000, truncated: 'length' }),
  answer('p5', 'a.example', 2150, 300, { status: 404, bodyBytes: 7, rawBytes: 7 }),
  answer('p1', 'a.example', 3450, 100, { fetchId: 'a.example-again', bodyBytes: 4000, rawBytes: 900 }),
  answer('p1', 'b.example', 0, 1000, { bodyBytes: 300, rawBytes: 300, delayMs: 2000 }),
  answer('p2', 'b.example', 60_000, 2000, { status: 503, bodyBytes: 0, rawBytes: 0, delayMs: 2000 }),
  answer('p3', 'b.example', 65_000, 1, { status: 0, error: 'reset', bodyBytes: 0, rawBytes: 0, archive: null }),
  answer('d', 'c.example', 0, 5, { outcomeKind: 'dns', status: 0, startedAt: 0, error: 'nxdomain', archive: null }),
] as [string, Fetched][]

const decision = (processor: Decision['processor'], reasons: Decision['reasons']): Decision => ({
  processor,
  fetchId: null,
  total: 0,
  reasons,
  evidence: null,
  at: nowMs,
})
const decisions: [string, Decision][] = [
  [
    'http://a.example/1',
    decision('canonicalize', [
      { code: 'admitted', count: 9, examples: [] },
      { code: 'out-of-scope', count: 4, examples: ['http://x.example/'] },
    ]),
  ],
  ['http://a.example/2', decision('canonicalize', [{ code: 'out-of-scope', count: 1, examples: ['http://y/'] }])],
  ['http://a.example/2', decision('dedupe', [{ code: 'repeat', count: 7, examples: [] }])],
  ['http://a.example/4', decision('schedule', [{ code: 'depth', count: 1, examples: [] }])],
]

describe('the shipped queries, on records whose answers are worked out by hand', { skip }, () => {
  const dir = mkdtempSync(join(tmpdir(), 'weir-queries-'))
  const queries = new Map(readSqlFiles(queriesDir).map(({ name, sql }) => [name, sql]))
  const asked = new Set<string>()
  let analytics: Analytics

  const ask = async (name: string): Promise<readonly (readonly unknown[])[]> => {
    asked.add(name)
    return (await analytics.query(queries.get(name)!)).rows
  }
  const insert = (table: string, rows: Row[]) => analytics.insert(table, rows, `${table}-${rows.length}`)

  before(async () => {
    analytics = createChdbAnalytics({ dir, database: 'weir', schemaDir, newPassword: () => 'x' })
    await analytics.ensureSchema()
    await insert(
      'page_states',
      pages.map(({ url, state }) => pageStatesRow(url, pageState(state))),
    )
    await insert(
      'parses',
      pages.flatMap(({ url, tokens }) =>
        tokens === undefined ? [] : [parsesRow(url, parsed({ tokenCount: tokens }))],
      ),
    )
    await insert(
      'hosts',
      hosts.map(([host, value], offset) => hostsRow(host, value, offset, nowMs)),
    )
    await insert(
      'fetches',
      fetches.map(([key, value]) => fetchesRow(key, value)),
    )
    await insert(
      'decisions',
      decisions.flatMap(([key, value]) => decisionsRows(key, value)),
    )
  })
  after(async () => {
    await analytics?.close()
    rmSync(dir, { recursive: true, force: true })
  })

  test('url-states: own states, and the host or origin that a queued URL waits for; the sum is what was admitted', async () => {
    const rows = await ask('url-states')
    const time = (ms: number) => new Date(ms).toISOString().replace('T', ' ').slice(0, -1)
    assert.deepEqual(rows, [
      ['known', 'ok', '6', time(nowMs - hourMs)],
      ['known', 'missing', '1', time(nowMs + hourMs)],
      ['parked', 'back-off', '1', time(nowMs + hourMs)],
      ['parked', 'depth', '1', null],
      ['parked', 'robots-unreachable', '1', null],
      ['queued', 'none', '1', null],
    ])
    assert.equal(
      rows.reduce((sum, row) => sum + Number(row[2]), 0),
      new Set(pages.map((p) => p.url)).size,
    )
  })

  test('freshness: ages 1, 1, 2, 3, 10, 10 hours', async () => {
    assert.deepEqual(await ask('freshness'), [
      ['', '6', 3, 10, 10, 10, '1'],
      ['a.example', '4', 2, 3, 3, 3, '1'],
      ['b.example', '2', 10, 10, 10, 10, '0'],
    ])
  })

  test('duplicates-by-host: b had the text first, both of a repeat it', async () => {
    assert.deepEqual(await ask('duplicates-by-host'), [
      ['a.example', '4', '3', '2', 0.5],
      ['b.example', '2', '2', '0', 0],
    ])
  })

  test('near-duplicates: two bits apart is near, a page of ten words is not looked at', async () => {
    assert.deepEqual(await ask('near-duplicates'), [
      [
        s.toString(),
        '4',
        '2',
        2,
        ['http://a.example/1', 'http://a.example/2', 'http://a.example/3', 'http://b.example/1'],
      ],
    ])
  })

  test('status-mix: four answers of 200, 404 and 503, one reset; robots.txt and DNS do not count', async () => {
    assert.deepEqual(await ask('status-mix'), [
      ['200', '3', 0.5, '2'],
      ['404', '1', 0.1667, '1'],
      ['503', '1', 0.1667, '1'],
      ['reset', '1', 0.1667, '1'],
    ])
  })

  test('requests-vs-rows', async () => {
    assert.deepEqual(await ask('requests-vs-rows'), [
      ['page', '6', '6', '6', '5', '5', '0'],
      ['dns', '1', '1', '0', '0', '0', '0'],
      ['robots', '1', '1', '1', '1', '1', '0'],
    ])
  })

  test('slowest-hosts: 1 and 2 s on b, 50, 100, 100 and 300 ms on a', async () => {
    assert.deepEqual(await ask('slowest-hosts'), [
      ['b.example', '2', '2000', '2000', 2000, 'crawl-delay'],
      ['a.example', '4', '100', '300', 1000, 'minimum'],
    ])
  })

  test('biggest-pages: by what was decoded', async () => {
    const rows = await ask('biggest-pages')
    assert.deepEqual(
      rows.map((row) => row.slice(0, 5)),
      [
        ['5000', '1000', 'text/html', 'length', 'http://a.example/1'],
        ['4000', '900', 'text/html', '', 'http://a.example/1'],
        ['300', '300', 'text/html', '', 'http://b.example/1'],
        ['7', '7', 'text/html', '', 'http://a.example/5'],
        ['0', '0', 'text/html', '', 'http://b.example/2'],
      ],
    )
  })

  test('refused-links: summed over pages, without what was admitted and what concerns a URL', async () => {
    assert.deepEqual(await ask('refused-links'), [
      ['dedupe', 'repeat', '7', '1', ''],
      ['canonicalize', 'out-of-scope', '5', '2', 'http://x.example/'],
    ])
  })

  test('throughput: two minutes', async () => {
    const minute = (ms: number) => new Date(ms).toISOString().replace('T', ' ').slice(0, 19)
    assert.deepEqual(await ask('throughput'), [
      [minute(startMs), '5', '3', '2', 1.02, '0'],
      [minute(startMs + 60_000), '1', '0', '1', 0, '1'],
    ])
  })

  test('failing-hosts: 503 and a reset of b, a name of c', async () => {
    const rows = await ask('failing-hosts')
    assert.deepEqual(
      rows.map((row) => row.slice(0, 4)),
      [
        ['b.example', '3', '2', 0.6667],
        ['c.example', '1', '1', 1],
      ],
    )
    assert.match(String(rows[0]![4]), /^(503|reset)$/)
    assert.equal(rows[0]![6], 'back-off: 503 with Retry-After: 3600')
    assert.deepEqual(rows[1]!.slice(4), ['nxdomain', null, ''])
  })

  test('changes: the one page that was fetched twice had changed', async () => {
    assert.deepEqual(await ask('changes'), [['a.example', '1', '2', '1', 1]])
  })

  test('politeness-audit: empty, until a request comes 100 ms early and another before the last one ended', async () => {
    assert.deepEqual(await ask('politeness-audit'), [])
    const early = [
      answer('early', 'a.example', 4450, 1, {}),
      // 'p2' of b took until 62,000; its delay is 2,000.
      answer('overlap', 'b.example', 61_000, 1, { delayMs: 2000 }),
    ]
    await insert(
      'fetches',
      early.map(([key, value]) => fetchesRow(key, value)),
    )
    const rows = await ask('politeness-audit')
    assert.deepEqual(
      rows.map(([host, id, , , , gap, delay]) => [host, id, gap, delay]),
      [
        ['a.example', 'a.example-early', '900', 1000],
        ['b.example', 'b.example-overlap', '-1000', 2000],
      ],
    )
  })

  test('every query that is shipped is asked here, and begins with what it answers', () => {
    assert.deepEqual([...asked].sort(), [...queries.keys()])
    for (const [name, sql] of queries) assert.match(sql, /^-- [A-Z].*[.;:]/, name)
  })
})
