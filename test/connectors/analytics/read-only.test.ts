import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertReadOnly } from '../../../connectors/analytics/read-only.ts'

test('what reads is let through, whatever its literals and comments say', () => {
  for (const sql of [
    'SELECT 1',
    '-- a; DROP\nWITH x AS (SELECT 1) SELECT * FROM x;',
    "/* INSERT INTO */ (SELECT 'INSERT INTO; ; it''s \\'; INTO OUTFILE')",
    'SELECT "INSERT" , `INTO` FROM t -- ; DROP TABLE t',
    'describe table t',
    'EXPLAIN SELECT 1',
  ]) {
    assert.doesNotThrow(() => assertReadOnly(sql), sql)
  }
})

test('what could write is not', () => {
  for (const sql of [
    '',
    ';',
    'drop table t',
    "SELECT 1 into /* x */ outfile 'f'",
    'WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x',
    'SELECT 1; SELECT 2',
    "SELECT '\\'; DROP TABLE t; --'; DROP TABLE t",
    "SELECT $a$'$a$; DROP TABLE t --'",
    'EXPLAIN SELECT 1; TRUNCATE t',
  ]) {
    assert.throws(() => assertReadOnly(sql), { code: 'read-only' }, sql)
  }
})

test('a statement that means harm takes no longer than its length', () => {
  for (const piece of ["'", "\\'", '$', '$a', '/*', '"', '`\\', '(', 'a ']) {
    const startedMs = performance.now()
    try {
      assertReadOnly(`SELECT '${piece.repeat(200_000)}`)
    } catch {}
    assert.ok(performance.now() - startedMs < 2_000, piece)
  }
})
