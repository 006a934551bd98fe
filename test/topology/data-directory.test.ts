import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { openDataDirectory } from '../../topology/data-directory.ts'
import type { CommandError } from '../../topology/errors.ts'

const create = { crawl: 'weir', partitions: 4, createdAtMs: Date.UTC(2026, 0, 1) }

test('a new directory gets its crawl.json, an old one is opened as it is', (t) => {
  const dir = join(temporary(t), 'new', 'deep')
  const first = openDataDirectory({ dir, create })
  assert.equal(first.created, true)
  assert.equal(first.crawl.createdAt, '2026-01-01T00:00:00.000Z')
  first.release()
  const again = openDataDirectory({ dir, create: { ...create, partitions: 8 } })
  assert.equal(again.created, false)
  assert.equal(again.crawl.partitions, 4)
  again.release()
})

test('a second holder is refused, also from another process, until the first lets go', (t) => {
  const dir = temporary(t)
  const first = openDataDirectory({ dir, create })
  refused('data-locked', () => openDataDirectory({ dir, create }))
  const script = `import { openDataDirectory } from ${JSON.stringify(join(import.meta.dirname, '../../topology/data-directory.ts'))}
    try { openDataDirectory({ dir: ${JSON.stringify(dir)} }) } catch (error) { process.stdout.write(error.code) }`
  const other = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' })
  assert.equal(other.stdout, 'data-locked', other.stderr)
  first.release()
  openDataDirectory({ dir }).release()
})

test('a directory with other files is refused and nothing is written there', (t) => {
  const dir = temporary(t)
  writeFileSync(join(dir, 'thesis.tex'), 'x')
  refused('data-foreign', () => openDataDirectory({ dir, create }))
  assert.deepEqual(readdirSync(dir), ['thesis.tex'])
})

test('nothing there and nothing to create is an error that names the directory', (t) => {
  refused('data-missing', () => openDataDirectory({ dir: join(temporary(t), 'none') }))
})

test('another crawl, a newer format and a corrupt file are refused and left as they are', (t) => {
  const dir = temporary(t)
  openDataDirectory({ dir, create }).release()
  refused('data-other-crawl', () => openDataDirectory({ dir, create, crawl: 'other' }))
  const file = join(dir, 'crawl.json')
  for (const [code, text] of [
    ['data-newer', readFileSync(file, 'utf8').replace('"format": 1', '"format": 2')],
    ['data-corrupt', '{"format": 1, "crawl": '],
    ['data-corrupt', '{"format": 1}'],
  ] as const) {
    writeFileSync(file, text)
    refused(code, () => openDataDirectory({ dir, create }))
    assert.equal(readFileSync(file, 'utf8'), text)
  }
})

function temporary(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'weir-data-'))
  t.after(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

function refused(code: string, open: () => unknown): void {
  assert.throws(open, (error: CommandError) => {
    assert.equal(error.code, code)
    assert.equal(error.exitCode, 3)
    return true
  })
}
