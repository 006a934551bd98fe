import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { AnalyticsError } from '../../../connectors/analytics/errors.ts'
import type { Analytics, Row } from '../../../connectors/analytics/types.ts'
import { insertBatch, openGeneration } from '../../../processors/sink/sink.ts'

/** Tables in memory that take an insert whole or not at all, once for each token. */
function fakeAnalytics(refuses: (row: Row) => boolean = () => false) {
  const tables = new Map<string, Row[]>()
  const tokens = new Set<string>()
  let inserts = 0
  const rows = (name: string): Row[] => tables.get(name) ?? []
  const analytics: Analytics = {
    ensureSchema: async () => {},
    async insert(name, added, token) {
      inserts++
      if (added.some(refuses)) throw new AnalyticsError('row-refused', 'a row is refused')
      if (tokens.has(token)) return
      tokens.add(token)
      tables.set(name, [...rows(name), ...added])
    },
    async query(sql) {
      if (sql.includes('generation')) {
        return { columns: [], rows: rows('sinks').map((r) => [r.application_id, r.generation]) }
      }
      const all = ['fetches', 'parses', 'page_states', 'hosts', 'decisions'].flatMap(rows)
      return { columns: [], rows: [[String(all.length)]] }
    },
    access: async () => ({ url: '', username: '', password: '', database: 'weir' }),
    close: async () => {},
  }
  return { analytics, rows, inserts: () => inserts }
}

test('refused records are found by halving; all others are in, once, however often it is repeated', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(fc.nat(60), { maxLength: 6 }), fc.integer({ min: 1, max: 61 }), async (bad, n) => {
      const fake = fakeAnalytics((row) => bad.includes(Number(row.id)))
      const records = Array.from({ length: n }, (_, id) => ({ offset: 100 + id, rows: [{ id }, { id }] }))
      const wanted = records.filter((r) => !bad.includes(r.offset - 100))
      for (let round = 0; round < 2; round++) {
        const refused = await insertBatch(fake.analytics, 'fetches', records, 'token')
        assert.deepEqual(
          refused.map((r) => r.offset),
          records.filter((r) => bad.includes(r.offset - 100)).map((r) => r.offset),
        )
      }
      assert.deepEqual(
        fake.rows('fetches'),
        wanted.flatMap((r) => r.rows),
      )
    }),
  )
})

test('a batch without rows is no insert, and what is not about content is not halved', async () => {
  const fake = fakeAnalytics()
  assert.deepEqual(await insertBatch(fake.analytics, 'fetches', [{ offset: 1, rows: [] }], 't'), [])
  assert.equal(fake.inserts(), 0)
  const gone: Analytics = {
    ...fake.analytics,
    insert: async () => {
      throw new AnalyticsError('unavailable', 'gone')
    },
  }
  const records = [1, 2].map((offset) => ({ offset, rows: [{ id: offset }] }))
  await assert.rejects(insertBatch(gone, 'fetches', records, 't'), { code: 'unavailable' })
})

test('an empty database gets a generation and keeps it; one with other rows is refused', async () => {
  const fake = fakeAnalytics()
  const open = (known: string[], fresh: string) =>
    openGeneration(fake.analytics, 'weir-sink', new Set(known), () => fresh)
  assert.equal(await open([], 'g1'), 'g1')
  // Killed before anything was planned.
  assert.equal(await open([], 'g2'), 'g1')
  await fake.analytics.insert('fetches', [{ id: 1 }], 'x')
  assert.equal(await open(['g0', 'g1'], 'g3'), 'g1')
  // Another log, or this one set back to before its first batch.
  await assert.rejects(open([], 'g4'), { code: 'foreign', message: /database weir/ })
})
