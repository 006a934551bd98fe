import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import { type ArchiveReader, createArchiveReader } from '../../connectors/archive/file.ts'
import { createSystemClock } from '../../connectors/clock/system.ts'
import { openEmbeddedLog } from '../../connectors/log/embedded/open.ts'
import { type ExtractRules, readExtractRules } from '../../processors/parse/extract-rules.ts'
import { topicSerde } from '../../schemas/codec.ts'
import type { Decision, Parsed } from '../../schemas/types.ts'
import { openDataDirectory } from '../../topology/data-directory.ts'
import { openEmbeddedCrawl } from '../../topology/embedded.ts'
import { type ReplayParseOptions, type ReplayReport, replayParse } from '../../topology/replay.ts'
import { defaultSettings } from '../../topology/settings.ts'
import { type TopicName, topicName } from '../../topology/topics.ts'
import { startStaticServer } from '../web/static-server.ts'

const weir = resolve(import.meta.dirname, '../../topology/cli/weir.ts')
const shops = 12
const price = rulesOf({ price: { css: '.price', many: true } })
const clock = createSystemClock()

let root: string
let server: Awaited<ReturnType<typeof startStaticServer>>
/** A crawl without rules of a home page, `shops` pages with a price, and one that no tree is built of. */
let crawled: string

before(async () => {
  root = mkdtempSync(join(tmpdir(), 'weir-replay-'))
  const site = join(root, 'site')
  mkdirSync(site)
  const links = Array.from({ length: shops }, (_, i) => `<a href="/shop-${i}.html">shop ${i}</a>`)
  writeFileSync(join(site, 'index.html'), `<title>Home</title>${links.join('\n')}<a href="/deep.html">deep</a>`)
  for (let i = 0; i < shops; i++) {
    writeFileSync(
      join(site, `shop-${i}.html`),
      `<title>Shop ${i}</title><p>Thing ${i} costs <b class="price"> ${i} € </b>`,
    )
  }
  writeFileSync(join(site, 'deep.html'), `<title>Deep</title>${'<div>'.repeat(600)}`)
  server = await startStaticServer({ root: site })
  crawled = join(root, 'crawled')
  await crawl(crawled)
})

after(async () => {
  await server.close()
  rmSync(root, { recursive: true, force: true })
})

test('a dry run shows what would change and changes nothing, not a byte', async (t) => {
  const data = copy(t)
  const before = hashOf(data)
  const report = await replay(data, { rules: price, apply: false })
  assert.deepEqual(hashOf(data), before)
  assert.equal(report.applied, false)
  assert.equal(report.pages, shops + 2)
  assert.equal(report.written, 0)
  assert.equal(report.parseVersion, 2)
  assert.equal(report.sample.length, 3)
  for (const { url, before, after, alsoChanged } of report.sample) {
    const [, n] = /shop-(\d+)\.html$/.exec(url)!
    assert.deepEqual([before, after, alsoChanged], [{}, { price: [`${n} €`] }, []])
  }
})

test('--apply adds the column at the same keys and partitions, as a higher version, without a request', async (t) => {
  const data = copy(t)
  const asked = server.log.length
  const before = await recordsOf<Parsed>(data, 'parsed')
  const report = await replay(data, { rules: price, apply: true })
  assert.equal(server.log.length, asked)
  assert.deepEqual([report.pages, report.written, report.missing, report.extractFailed], [shops + 2, shops + 2, 0, 1])
  const all = await recordsOf<Parsed>(data, 'parsed')
  const last = latest(all)
  assert.equal(last.size, before.length)
  for (const { key, partition, value } of before) {
    const now = last.get(key)!
    assert.equal(now.partition, partition)
    const [, n] = /shop-(\d+)\.html$/.exec(key) ?? []
    // Everything else is as it was: parse is a function of its bytes.
    assert.deepEqual(now.value, {
      ...value,
      parseVersion: 2,
      extracted: n === undefined ? {} : { price: [`${n} €`] },
    })
    assert.equal(value.parseVersion, 1)
  }
  const failures = (await recordsOf<Decision>(data, 'decisions')).filter(({ value }) => value.processor === 'parse')
  assert.deepEqual(
    failures.map(({ key, value }) => [new URL(key).pathname, value.reasons[0]!.code, value.evidence]),
    [['/deep.html', 'extract-failed', 'elements nested more than 512 deep']],
  )
})

test('the same rules again have nothing to do; others, and none, are a higher version', async (t) => {
  const data = copy(t)
  assert.deepEqual(await written(data, { rules: price, apply: true }), [2, shops + 2])
  const before = hashOf(data)
  assert.deepEqual(await written(data, { rules: price, apply: true }), [2, 0])
  assert.deepEqual(hashOf(data), before)
  assert.deepEqual(await written(data, { rules: {}, apply: true }), [3, shops + 2])
  for (const { value } of latest(await recordsOf<Parsed>(data, 'parsed')).values())
    assert.deepEqual(value.extracted, {})
})

test('a crawl with rules extracts at once; going on with others raises the version', async (t) => {
  const data = join(temporary(t), 'data')
  await crawl(data, price)
  const last = latest(await recordsOf<Parsed>(data, 'parsed'))
  const shop = [...last].find(([key]) => key.endsWith('/shop-7.html'))!
  assert.deepEqual([shop[1].value.parseVersion, shop[1].value.extracted], [1, { price: ['7 €'] }])
  const failed = (await recordsOf<Decision>(data, 'decisions')).filter(({ value }) => value.processor === 'parse')
  assert.deepEqual(
    failed.map(({ value }) => value.reasons[0]!.code),
    ['extract-failed'],
  )
  assert.deepEqual(await written(data, { rules: price, apply: true }), [1, 0])
  await crawl(data)
  assert.equal(openVersion(data), 2)
})

test('an older directory without the hash of its rules opens; its next version is a higher one', async (t) => {
  const data = copy(t)
  const file = join(data, 'crawl.json')
  const { rulesHash: _, ...older } = JSON.parse(readFileSync(file, 'utf8'))
  writeFileSync(file, JSON.stringify({ ...older, rulesVersion: 1 }))
  assert.deepEqual(await written(data, { rules: {}, apply: true }), [2, shops + 2])
})

test('--host, --url and --limit choose the pages', async (t) => {
  const data = copy(t)
  const home = `http://127.0.0.1:${server.port}/`
  const pages = async (more: Partial<ReplayParseOptions>) =>
    (await replay(data, { rules: price, apply: false, ...more })).pages
  assert.equal(await pages({ only: { urlPrefix: `${home}shop-1` } }), 3)
  assert.equal(await pages({ only: { host: '127.0.0.1' } }), shops + 2)
  assert.equal(await pages({ only: { host: 'other.example' } }), 0)
  assert.equal(await pages({ limit: 5 }), 5)
  assert.deepEqual(await written(data, { rules: price, apply: true, limit: 5 }), [2, 5])
  assert.deepEqual(await written(data, { rules: price, apply: true }), [2, shops + 2 - 5])
})

test('interrupted it keeps what it did and goes on; broken off it does that batch again; nothing is done twice', async (t) => {
  const data = copy(t)
  const stopping = new AbortController()
  const first = await replay(data, {
    rules: price,
    apply: true,
    stopping: stopping.signal,
    onProgress: ({ done }) => done === 4 && stopping.abort(),
  })
  assert.deepEqual([first.ended, first.written], ['interrupted', 4])

  let reads = 0
  const dying = (archive: ArchiveReader): ArchiveReader => ({
    ...archive,
    read: (ref) => (reads++ === 5 ? Promise.reject(new Error('power cut')) : archive.read(ref)),
  })
  const before = await recordsOf<Parsed>(data, 'parsed')
  await assert.rejects(replay(data, { rules: price, apply: true }, dying), /power cut/)
  assert.deepEqual(await recordsOf<Parsed>(data, 'parsed'), before)

  const last = await replay(data, { rules: price, apply: true })
  assert.deepEqual([last.ended, last.written, last.alreadyDone], ['done', shops + 2 - 4, 4])
  const again = (await recordsOf<Parsed>(data, 'parsed')).filter(({ value }) => value.parseVersion === 2)
  assert.equal(again.length, shops + 2)
  assert.equal(latest(again).size, shops + 2)
})

test('a missing or damaged archive file is counted and named, the rest goes on, exit code 1; put back, it is made up for', async (t) => {
  const data = copy(t)
  const [file] = readdirSync(join(data, 'archive'))
  const path = join(data, 'archive', file!)
  const whole = readFileSync(path)
  truncateSync(path, Math.floor(whole.length / 2))
  const config = configFile(t)
  const cut = run('replay', 'parse', '--data', data, '--config', config, '--apply', '--json')
  assert.equal(cut.status, 1, cut.stderr)
  const report = JSON.parse(cut.stdout) as ReplayReport
  assert.ok(report.missing > 0 && report.written > 0, cut.stdout)
  assert.equal(report.missing + report.written, shops + 2)
  assert.match(cut.stderr, /archive-missing: http:\/\/127\.0\.0\.1:\d+\/\S*: reading .*behind the end of the file/)

  renameSync(path, `${path}.away`)
  const gone = await replay(data, { rules: price, apply: true })
  assert.deepEqual([gone.missing, gone.written], [report.missing, 0])
  const last = latest(await recordsOf<Parsed>(data, 'parsed'))
  assert.equal(last.size, shops + 2)

  writeFileSync(path, whole)
  assert.deepEqual(await written(data, { rules: price, apply: true }), [2, report.missing])
})

test('while a crawl runs on the directory it is refused at once, with what to do', async (t) => {
  const data = copy(t)
  const holder = spawn(process.execPath, [
    '--input-type=module',
    '-e',
    `import { startControlServer } from ${JSON.stringify(resolve(import.meta.dirname, '../../topology/control.ts'))}
    import { openDataDirectory } from ${JSON.stringify(resolve(import.meta.dirname, '../../topology/data-directory.ts'))}
    const directory = openDataDirectory({ dir: ${JSON.stringify(data)} })
    await startControlServer(directory.path('control.json'), { status: async () => ({}) })
    console.log('running')`,
  ])
  t.after(() => holder.kill('SIGKILL'))
  await once(holder.stdout, 'data')
  const refused = run('replay', 'parse', '--data', data, '--apply')
  assert.equal(refused.status, 3)
  assert.match(refused.stderr, /another weir process is using it.*stop the crawl first/s)
})

test('the command shows the sample; parse shows the fields of a file', (t) => {
  const data = copy(t)
  const config = configFile(t)
  const dry = run('replay', 'parse', '--data', data, '--config', config)
  assert.equal(dry.status, 0, dry.stderr)
  assert.match(dry.stdout, /\/shop-\d+\.html\n {2}price: \(none\) -> "\d+ €"\n/)
  assert.match(dry.stdout, /14 pages would be parsed again as version 2; nothing was changed, --apply writes\n$/)
  assert.equal(run('replay', 'parse', '--url', 'http://a/', '--host', 'a').status, 2)

  const file = join(root, 'site', 'shop-3.html')
  const parsed = run('parse', file, '--config', config, '--json')
  assert.deepEqual(JSON.parse(parsed.stdout).extracted, { price: ['3 €'] })
  assert.equal('extracted' in JSON.parse(run('parse', file, '--json').stdout), false)
})

async function crawl(data: string, extract: ExtractRules = {}): Promise<void> {
  const settings = { ...defaultSettings, data, allowPrivate: true, delayMs: 0, analytics: false, extract }
  const running = await openEmbeddedCrawl({ settings, seeds: [`http://127.0.0.1:${server.port}/`] })
  const report = await running.finished
  assert.equal(report.states['known/ok'], shops + 2, JSON.stringify(report.states))
}

async function replay(
  data: string,
  options: Pick<ReplayParseOptions, 'rules' | 'apply'> & Partial<ReplayParseOptions>,
  wrap: (archive: ArchiveReader) => ArchiveReader = (archive) => archive,
): Promise<ReplayReport> {
  const directory = openDataDirectory({ dir: data })
  const log = await openEmbeddedLog({ dir: directory.path('log'), clock })
  const archive = createArchiveReader(directory.path('archive'))
  try {
    return await replayParse({ directory, log, archive: wrap(archive), clock, agentToken: 'weir', ...options })
  } finally {
    await archive.close()
    await log.close()
    directory.release()
  }
}

async function written(...args: Parameters<typeof replay>): Promise<[version: number, records: number]> {
  const report = await replay(...args)
  return [report.parseVersion, report.written]
}

interface Read<V> {
  readonly key: string
  readonly partition: number
  readonly value: V
}

async function recordsOf<V>(data: string, topic: TopicName): Promise<Read<V>[]> {
  const log = await openEmbeddedLog({ dir: join(data, 'log'), clock })
  const serde = topicSerde<V>(topic)
  const records: Read<V>[] = []
  for (let partition = 0; partition < 4; partition++) {
    for (let next = 0; ; ) {
      const batch = await log.read(log.partition(topicName('weir', topic), partition), next, 1 << 20, 'stable')
      if (batch === null) break
      for (let i = 0; i < batch.count; i++) {
        const value = serde.deserialize(batch.value(i)!)
        records.push({ key: Buffer.from(batch.key(i)!).toString(), partition, value })
      }
      next = batch.nextOffset
    }
  }
  await log.close()
  return records
}

function latest<V>(records: readonly Read<V>[]): Map<string, Read<V>> {
  return new Map(records.map((record) => [record.key, record]))
}

function openVersion(data: string): number {
  const directory = openDataDirectory({ dir: data })
  directory.release()
  return directory.crawl.rulesVersion
}

/** Of everything that must stay as it is. */
function hashOf(data: string): Record<string, string> {
  const files = [
    'crawl.json',
    ...['log', 'archive'].flatMap((dir) => readdirSync(join(data, dir)).map((f) => join(dir, f))),
  ]
  const sha = (file: string) =>
    createHash('sha256')
      .update(readFileSync(join(data, file)))
      .digest('hex')
  return Object.fromEntries(files.map((file) => [file, sha(file)]))
}

function copy(t: TestContext): string {
  const data = join(temporary(t), 'data')
  cpSync(crawled, data, { recursive: true })
  return data
}

function configFile(t: TestContext): string {
  const file = join(temporary(t), 'weir.json')
  writeFileSync(file, JSON.stringify({ extract: { price: { css: '.price', many: true } } }))
  return file
}

function run(...args: string[]) {
  return spawnSync(process.execPath, [weir, ...args], { encoding: 'utf8', timeout: 30_000 })
}

function rulesOf(rules: object): ExtractRules {
  const read = readExtractRules(rules)
  assert.ok('rules' in read)
  return read.rules
}

function temporary(t: TestContext): string {
  const dir = mkdtempSync(join(root, 't-'))
  t.after(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}
