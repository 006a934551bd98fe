import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { AnalyticsError } from '../../connectors/analytics/errors.ts'
import type { Analytics } from '../../connectors/analytics/types.ts'

const table = `
CREATE TABLE IF NOT EXISTS things
(
    hash FixedString(16) DEFAULT unhex(hash_hex),
    hash_hex String EPHEMERAL,
    name String,
    big UInt64,
    at Nullable(DateTime64(3, 'UTC')),
    extracted Map(String, Array(String)),
    small UInt8,
    CONSTRAINT smallish CHECK small < 100
)
ENGINE = MergeTree ORDER BY name SETTINGS non_replicated_deduplication_window = 1000`

const thing = {
  hash_hex: '00112233445566778899aabbccddeeff',
  name: 'a\n\n"b"\\ \u{1f600}\u0000',
  big: '18446744073709551615',
  at: '2026-01-02T03:04:05.678Z',
  extracted: { price: ['1\n\n2', ''] },
  small: 1,
}

/** What every adapter of the Analytics port does; `open` is called once with a folder of schema files. */
export function analyticsSuite(name: string, open: (schemaDir: URL) => Promise<Analytics>): void {
  describe(name, () => {
    const dir = mkdtempSync(join(tmpdir(), 'weir-analytics-schema-'))
    let analytics: Analytics

    before(async () => {
      writeFileSync(join(dir, '1-things.sql'), table)
      writeFileSync(join(dir, '2-view.sql'), 'CREATE OR REPLACE VIEW names AS SELECT name FROM things')
      analytics = await open(pathToFileURL(`${dir}/`))
      await analytics.ensureSchema()
    })
    after(async () => {
      await analytics?.close()
      rmSync(dir, { recursive: true, force: true })
    })

    test('the schema may be made again', async () => {
      await analytics.ensureSchema()
      assert.deepEqual((await analytics.query('SELECT count() FROM names')).rows, [['0']])
    })

    test('a row comes back as it was written: blank lines, quotes, zeros, 64 bits, bytes, no time', async () => {
      await analytics.insert('things', [thing, { ...thing, name: 'z', at: null, extracted: {} }], 'exact')
      const { columns, rows } = await analytics.query(
        'SELECT lower(hex(hash)) AS hash, name, big, at, extracted, small FROM things ORDER BY name',
      )
      assert.deepEqual(
        columns.map((c) => c.name),
        ['hash', 'name', 'big', 'at', 'extracted', 'small'],
      )
      assert.equal(columns[2]!.type, 'UInt64')
      assert.deepEqual(rows, [
        [thing.hash_hex, thing.name, thing.big, '2026-01-02 03:04:05.678', thing.extracted, 1],
        [thing.hash_hex, 'z', thing.big, null, {}, 1],
      ])
    })

    test('a token makes an insert happen once, also when others came between; another token is another insert', async () => {
      const count = async () =>
        Number((await analytics.query("SELECT count() FROM things WHERE name = 'token'")).rows[0])
      const rows = [{ ...thing, name: 'token' }]
      await analytics.insert('things', rows, 'token-1')
      await analytics.insert('things', rows, 'token-2')
      await analytics.insert('things', rows, 'token-1')
      assert.equal(await count(), 2)
    })

    test('nothing of an insert is visible when one row is refused; the token stays free', async () => {
      const count = async () =>
        Number((await analytics.query("SELECT count() FROM things WHERE name = 'refused'")).rows[0])
      const good = { ...thing, name: 'refused' }
      for (const bad of [{ small: 200 }, { big: 'many' }, { at: 'yesterday' }]) {
        await assert.rejects(analytics.insert('things', [good, { ...good, ...bad }], 'refused'), isError('row-refused'))
      }
      assert.equal(await count(), 0)
      await analytics.insert('things', [good], 'refused')
      assert.equal(await count(), 1)
    })

    test('a table that is missing is no fault of the rows', async () => {
      await assert.rejects(analytics.insert('nothing', [thing], 't'), isError('refused'))
    })

    test('nothing that writes is run by a query', async () => {
      const writing = [
        'DROP TABLE things',
        'INSERT INTO things (name) VALUES (1)',
        "INSERT INTO FUNCTION file('/tmp/weir-never.csv', 'CSV', 'a Int8') SELECT 1",
        "SELECT 1 INTO OUTFILE '/tmp/weir-never.csv'",
        'SELECT 1; DROP TABLE things',
        'SET readonly = 0',
        'SELECT 1 SETTINGS readonly = 0',
        '',
      ]
      for (const sql of writing) await assert.rejects(analytics.query(sql), isError('read-only'), sql)
      assert.equal((await analytics.query('SELECT count() > 0 FROM things;')).rows[0]![0], 1)
    })

    test('wrong SQL is told as such, with the name that is wrong', async () => {
      await assert.rejects(analytics.query('SELECT nothing FROM things'), (error) => {
        return isError('query')(error) && /nothing/.test((error as Error).message)
      })
    })

    test('queries at the same time do not disturb each other', async () => {
      const answers = await Promise.all(
        Array.from({ length: 12 }, (_, i) => analytics.query(`SELECT ${i}, sum(number) FROM numbers(100000)`)),
      )
      assert.deepEqual(
        answers.map((a) => a.rows[0]),
        answers.map((_, i) => [i, '4999950000']),
      )
    })
  })
}

export function isError(code: string): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof AnalyticsError, String(error))
    assert.equal(error.code, code, error.message)
    return true
  }
}
