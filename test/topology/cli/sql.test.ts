import assert from 'node:assert/strict'
import { test } from 'node:test'
import { json, serve, starSite, temporary, weir } from './weir.ts'

test('query: the names with what each answers, its SQL, and a suggestion for a name that is none', async (t) => {
  const list = await weir(t, ['query'])
  assert.equal(list.code, 0, list.stderr)
  assert.match(list.stdout, /^url-states +Where every admitted URL stands/m)
  const names = (await weir(t, ['query', '--json'])).stdout.trim().split('\n')
  assert.deepEqual(Object.keys(JSON.parse(names[0]!) as object), ['name', 'answers'])
  assert.equal(names.length, list.stdout.trim().split('\n').length)
  assert.match((await weir(t, ['query', 'url-states', '--sql'])).stdout, /^-- Where [\s\S]*\nFROM pages\n/)
  const wrong = await weir(t, ['query', 'url-state'])
  assert.equal(wrong.code, 2)
  assert.match(wrong.stderr, /did you mean url-states/)
})

test('sql: where there is no crawl, or one without ClickHouse, that is said', async (t) => {
  const data = temporary(t)
  assert.equal((await weir(t, ['sql', 'SELECT 1', '--data', data])).code, 3)
  const site = await serve(t, starSite(2))
  const crawl = [
    'crawl',
    `${site.origin}/`,
    '--data',
    data,
    '--allow-private',
    '--delay-ms',
    '0',
    '--no-analytics',
    '--json',
  ]
  const done = await weir(t, crawl)
  assert.equal(done.code, 0, done.stderr)
  assert.equal(json(done.stdout).length, 1)
  const asked = await weir(t, ['sql', 'SELECT 1', '--data', data])
  assert.equal(asked.code, 1)
  assert.match(asked.stderr, /--no-analytics/)
})
