import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { test } from 'node:test'

const lock = JSON.parse(readFileSync(resolve(import.meta.dirname, '../../package-lock.json'), 'utf8')) as {
  packages: { [path: string]: { resolved?: string; optionalDependencies?: { [name: string]: string } } }
}

test('the lock file names no download address', () => {
  const named = Object.entries(lock.packages).filter(([, entry]) => entry.resolved !== undefined)
  assert.deepEqual(named, [])
})

test("each platform's part of an optional dependency is in the lock file, or npm ci refuses it as out of step", () => {
  const missing = Object.values(lock.packages)
    .flatMap((entry) => Object.keys(entry.optionalDependencies ?? {}))
    .filter((name) => !Object.keys(lock.packages).some((path) => path.endsWith(`node_modules/${name}`)))
  assert.deepEqual([...new Set(missing)], [])
})
