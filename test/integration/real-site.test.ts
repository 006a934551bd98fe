/**
 * A site that nobody here wrote, Debian's python3-doc, crawled by the command line in a process of its own. What an
 * independent walk finds, what the server saw, what the archive holds and what `fetched` tells must agree.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { archiveFiles, reachedServer, readArchive, readOutcomes, serverLog, tally } from './support/judged.ts'
import { startNode } from './support/process.ts'
import { findPythonDoc } from './support/python-doc.ts'
import { walkSite } from './support/walk.ts'
import { findWarcio } from './support/warcio.ts'

const root = resolve(import.meta.dirname, '../..')
const site = findPythonDoc()

test('every page of python3-doc is fetched exactly once, and log, archive and server agree', {
  skip: site.root === null ? `no python3-doc: ${site.reason}` : false,
}, async (t) => {
  const server = startNode(t, join(root, 'test/web/static-server.ts'), ['--root', site.root!])
  const { port, control } = JSON.parse(await server.ready) as { port: number; control: number }
  const home = `http://127.0.0.1:${port}/`
  const walked = await walkSite(home)
  const before = (await serverLog(control)).length
  assert.ok(walked.pages.size > 500, `the walk found ${walked.pages.size} pages`)

  const data = mkdtempSync(join(tmpdir(), 'weir-real-'))
  t.after(() => rmSync(data, { recursive: true, force: true }))
  const crawl = startNode(t, join(root, 'topology/cli/weir.ts'), [
    'crawl',
    home,
    '--data',
    data,
    '--allow-private',
    '--delay-ms',
    '0',
    '--max-depth',
    'none',
    '--json',
  ])
  const { code } = await crawl.exit
  assert.equal(code, 0, crawl.stderr())
  const report = JSON.parse(crawl.stdout().trim().split('\n').at(-1)!) as {
    states: Record<string, number>
    parked: unknown[]
  }
  t.diagnostic(JSON.stringify(report))
  assert.deepEqual(report.parked, [])

  const requests = (await serverLog(control)).slice(before)
  const urls = tally(requests.map((r) => `http://127.0.0.1:${port}${r.path}`))
  const pages = [...walked.pages]
  assert.deepEqual(
    pages.filter((url) => urls.get(url) !== 1),
    [],
    'pages not requested exactly once',
  )
  assert.deepEqual(
    [...urls].filter(([, n]) => n !== 1),
    [],
    'URLs requested more than once',
  )

  const { fetched, deadLetters } = await readOutcomes(data)
  const reached = reachedServer(fetched)
  const archived = readArchive(data)
  t.diagnostic(
    `walk ${pages.length} pages; server ${requests.length} requests; WARC ${archived.length} responses and revisits; fetched ${reached.length} page and robots records`,
  )
  assert.equal(deadLetters, 0)
  assert.deepEqual(tally(archived.map((r) => r.url)), urls)
  assert.deepEqual(tally(reached.map((r) => r.value.url)), urls)
  assert.equal(new Set(fetched.map((r) => r.value.fetchId)).size, fetched.length)
  assert.equal(
    Object.values(report.states).reduce((a, b) => a + b, 0),
    reached.filter((r) => r.value.outcomeKind === 'page').length,
  )

  await t.test('warcio check accepts every WARC', (t) => {
    const warcio = findWarcio()
    if (warcio.tool === null) return t.skip(warcio.reason)
    const { ok, problems } = warcio.tool.check(archiveFiles(data))
    assert.ok(ok, problems)
  })
})
