import assert from 'node:assert/strict'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { createSystemClock } from '../../../connectors/clock/system.ts'
import { createRecordBatch } from '../../../connectors/log/batch.ts'
import { frameHeadBytes, frameMagic, readFrameHead, sealFrameHead } from '../../../connectors/log/embedded/frame.ts'
import { openEmbeddedLog } from '../../../connectors/log/embedded/open.ts'
import { topicSerde } from '../../../schemas/codec.ts'
import type { Control } from '../../../schemas/types.ts'
import { type TopicName, topicName } from '../../../topology/topics.ts'
import { json, serve, starSite, temporary, weir } from './weir.ts'

const fast = ['--allow-private', '--delay-ms', '0', '--patience-s', '1']

test('what is asked wrongly is refused with code 2 before anything is made', async (t) => {
  const dir = temporary(t)
  const config = join(dir, 'weir.json')
  writeFileSync(config, '{"maxPage": 3, "delayMs": -1}')
  const local = 'http://127.0.0.1:1/'
  const cases: [args: string[], message: RegExp, env?: { [name: string]: string }][] = [
    [
      ['crawl', 'example.org', 'http://'],
      /^weir: reading the seeds: "example.org": .*did you mean https:\/\/example.org\?\); "http:\/\/": /,
    ],
    [
      ['crawl', 'https://example.org/'],
      /^weir: starting a crawl of example.org: .* give --contact you@example.org .* WEIR_CONTACT\n$/,
    ],
    [['crawl', local, '--delay-ms', '0'], /^weir: --delay-ms 0: only for your own servers/],
    [['crawl', local], /^weir: starting a crawl of .*connected to only with --allow-private/],
    [['crawl', 'https://example.org/', '--contact', 'nope'], /^weir: --contact: it must be an e-mail address/],
    [['explain', ' '], /^weir: explaining "": give a URL or a host/],
    [
      ['crawl', local, '--max-pages', '0'],
      /^weir: reading the settings: --max-pages: must be a whole number of at least 1 or "none", not "0"\n$/,
    ],
    [['crawl', local, '--max-page', '1'], /^weir: unknown option '--max-page'\n\(Did you mean --max-pages\?\)/],
    [
      ['crawl', local],
      /^weir: reading the settings: environment: unknown variable WEIR_MAX_PAGE \(did you mean WEIR_MAX_PAGES\?\)\n$/,
      { WEIR_MAX_PAGE: '1' },
    ],
    [
      ['crawl', local, '--config', config],
      /weir.json: unknown setting "maxPage" \(did you mean maxPages\?\); .*weir.json: delayMs: must be a whole number from 0/,
    ],
    [
      ['explain', 'example.org/page'],
      /^weir: explaining "example.org\/page": a URL has a scheme \(did you mean https:\/\/example.org\/page\?\)\n$/,
    ],
  ]
  cases.push([['crawl', local, '--crawl', '../x'], /^weir: --crawl: it names topics and files: .*, not "..\/x"\n$/])
  const data = join(dir, 'data')
  await Promise.all(
    cases.map(async ([args, message, env = {}]) => {
      const { code, stdout, stderr } = await weir(t, [...args, '--data', data], { env })
      assert.match(stderr, message)
      assert.deepEqual([code, stdout], [2, ''], args.join(' '))
    }),
  )
  assert.equal(existsSync(data), false)
})

test('a directory that is missing, of another crawl, foreign, newer or corrupt is refused with code 3 and left alone', async (t) => {
  const { origin } = await serve(t, starSite(4))
  const dir = temporary(t)
  const data = join(dir, 'data')
  const run = await weir(t, ['crawl', `${origin}/`, '--data', data, ...fast])
  assert.equal(run.code, 0, run.stderr)

  const variant = (name: string, change: (dir: string) => void): string => {
    const copy = join(dir, name)
    cpSync(data, copy, { recursive: true })
    change(copy)
    return copy
  }
  const crawlFile = (from: string, to: string) => (copy: string) => {
    const file = join(copy, 'crawl.json')
    writeFileSync(file, readFileSync(file, 'utf8').replace(from, to))
  }
  const foreign = join(dir, 'foreign')
  mkdirSync(foreign)
  writeFileSync(join(foreign, 'thesis.tex'), 'x')
  const newerFormat = variant('newer-format', crawlFile('"format": 1', '"format": 2'))
  const cutFile = variant('cut-file', (copy) => truncateSync(join(copy, 'crawl.json'), 20))
  const flipped = variant('flipped', (copy) => editJournal(copy, (bytes) => void (bytes[bytes.length >> 1]! ^= 1)))
  const newerFrame = variant('newer-frame', (copy) => editJournal(copy, raiseVersion))
  const missing = join(dir, 'missing')
  const seed = ['crawl', `${origin}/`, ...fast]
  const cases: [dir: string, args: string[], message: RegExp][] = [
    [missing, ['status'], /^weir: opening the data directory .*missing: there is no crawl in it/],
    [missing, ['explain', `${origin}/`], /there is no crawl in it/],
    [missing, ['crawl'], /there is no crawl in it/],
    [data, [...seed, '--crawl', 'other'], /it belongs to the crawl "weir", not to "other"/],
    [foreign, seed, /it holds other files \(thesis.tex\)/],
    [newerFormat, seed, /its format is 2, this version of weir knows 1; use a newer weir/],
    [cutFile, ['status'], /^weir: reading .*cut-file\/crawl.json: /],
    [flipped, seed, /^weir: opening the data directory .*flipped: /],
    [flipped, ['status'], /^weir: opening the data directory .*flipped: /],
    [newerFrame, seed, /^weir: opening the data directory .*newer-frame: .*version/],
  ]
  const before = new Map(cases.map(([dir]) => [dir, contents(dir)]))
  for (const some of [cases.slice(0, 5), cases.slice(5)]) {
    await Promise.all(
      some.map(async ([dir, args, message]) => {
        const { code, stdout, stderr } = await weir(t, [...args, '--data', dir])
        assert.match(stderr, message)
        assert.equal(stderr.split('\n').length, 2, `one line, no stack: ${stderr}`)
        assert.deepEqual([code, stdout], [3, ''], args.join(' '))
      }),
    )
  }
  for (const [dir, was] of before) assert.deepEqual(contents(dir), was, `${dir} is as it was`)
})

test('a commit that was cut short is dropped with a message, and the crawl goes on', async (t) => {
  const { origin } = await serve(t, starSite(3))
  const data = join(temporary(t), 'data')
  const crawl = ['crawl', `${origin}/`, '--data', data, '--json', ...fast]
  await weir(t, [...crawl, '--max-pages', '1'])
  const [file] = journalFiles(data)
  writeFileSync(file!, Buffer.concat([readFileSync(file!), Buffer.from('wjf\u0001 a frame that was not finished')]))
  const { code, stdout, stderr } = await weir(t, crawl)
  assert.equal(code, 0, stderr)
  assert.match(stderr, /^cut off \d+ bytes of an unfinished commit at the end of the journal\n$/)
  assert.deepEqual(json(stdout)[0]!.states, { 'known/ok': 3 })
})

test('records that nobody can read go to the dead letters, and the crawl goes on', async (t) => {
  const { origin } = await serve(t, starSite(5))
  const data = join(temporary(t), 'data')
  const crawl = ['crawl', `${origin}/`, '--data', data, '--json', ...fast]
  await weir(t, [...crawl, '--max-pages', '2'])
  await write(data, 'discovered-urls', 1, 'http://hand.example/', Buffer.from('no Avro'))
  await write(data, 'fetched', 2, `${origin}/1`, Buffer.from([0xc3, 0x01, 1, 2, 3, 4, 5, 6, 7, 8, 9]))
  const { code, stdout, stderr } = await weir(t, crawl)
  assert.equal(code, 0, stderr)
  assert.deepEqual(json(stdout)[0]!.states, { 'known/ok': 5 })
  assert.match(
    stderr,
    /a record of weir.discovered-urls \(partition 1, offset \d+\) could not be processed and is in the dead letters: /,
  )
  assert.match(stderr, /a record of weir.fetched \(partition 2, offset \d+\) could not be processed/)

  const list = await weir(t, ['dead-letters', 'list', '--json', '--data', data])
  const letters = json(list.stdout)
  // Each application that reads a topic has its own trouble with a record.
  const sources = new Set(letters.map(({ topic, partition, key }) => `${topic} ${partition} ${key}`))
  assert.deepEqual([...sources].sort(), ['weir.discovered-urls 1 http://hand.example/', `weir.fetched 2 ${origin}/1`])
  const letter = letters.find(({ topic }) => topic === 'weir.discovered-urls')
  assert.equal(Buffer.from(String(letter!.value), 'base64').toString(), 'no Avro')
  const [shown, plain, none] = await Promise.all([
    weir(t, ['dead-letters', 'show', String(letter!.id), '--json', '--data', data]),
    weir(t, ['dead-letters', 'show', String(letter!.id), '--data', data]),
    weir(t, ['dead-letters', 'show', '9:9', '--data', data]),
  ])
  assert.deepEqual(json(shown.stdout), [letter])
  assert.match(
    plain.stdout,
    /weir.discovered-urls partition 1 offset \d+ .*\nkey: {3}http:\/\/hand.example\/\nvalue: \n00000000 {2}6e 6f 20 41 76 72 6f +no Avro\n$/,
  )
  assert.deepEqual([none.code, none.stdout], [1, ''])
  assert.match(none.stderr, /^weir: showing dead letter 9:9: there is none with this id/)
})

test('going on with a public crawl needs a contact too', async (t) => {
  const { origin } = await serve(t, starSite(2))
  const data = join(temporary(t), 'data')
  await weir(t, ['crawl', `${origin}/`, '--data', data, ...fast])
  const rule: Control = {
    kind: 'scope-host',
    mode: 'host',
    host: 'example.org',
    site: 'example.org',
    ports: [],
    why: 'a seed',
    at: 0,
  }
  for (let partition = 0; partition < 4; partition++) {
    await write(data, 'controls', partition, 'scope-host:example.org', topicSerde<Control>('controls').serialize(rule))
  }
  const before = contents(join(data, 'log'))
  const { code, stdout, stderr } = await weir(t, ['crawl', '--data', data, ...fast])
  assert.deepEqual([code, stdout], [2, ''])
  assert.match(stderr, /^weir: starting a crawl of example.org: .* give --contact /)
  assert.deepEqual(contents(join(data, 'log')), before)
})

test('what a killed process left in control.json does not mislead: nobody there, or somebody else', async (t) => {
  const stranger = await serve(t, () => '{"running":true}')
  const { origin } = await serve(t, starSite(2))
  const data = join(temporary(t), 'data')
  await weir(t, ['crawl', `${origin}/`, '--data', data, ...fast])
  for (const port of [1, Number(new URL(stranger.origin).port)]) {
    writeFileSync(join(data, 'control.json'), JSON.stringify({ pid: 1, port, token: 'x' }))
    const { code, stdout, stderr } = await weir(t, ['status', '--json', '--data', data])
    assert.equal(code, 0, stderr)
    assert.equal(json(stdout)[0]!.running, false)
  }
})

function journalFiles(data: string): string[] {
  return readdirSync(join(data, 'log'))
    .filter((name) => name.endsWith('.log'))
    .sort()
    .map((name) => join(data, 'log', name))
}

function editJournal(data: string, edit: (bytes: Buffer) => void): void {
  const [file] = journalFiles(data)
  const bytes = readFileSync(file!)
  edit(bytes)
  writeFileSync(file!, bytes)
}

/** The first frame after the middle says that it is of a version to come; its head is whole. */
function raiseVersion(bytes: Buffer): void {
  for (let at = bytes.indexOf(frameMagic, bytes.length >> 1); at >= 0; at = bytes.indexOf(frameMagic, at + 1)) {
    if (at + frameHeadBytes > bytes.length || readFrameHead(bytes, at, at) === undefined) continue
    bytes[at + 4]!++
    sealFrameHead(bytes, at)
    return
  }
  assert.fail('the journal has no frame in its second half')
}

/** Every file but the lock's, with its bytes. */
function contents(dir: string): Map<string, string> {
  if (!existsSync(dir)) return new Map()
  const names = readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.startsWith('LOCK') && !entry.name.endsWith('lock.mdb'))
    .map((entry) => join(entry.parentPath, entry.name))
  return new Map(names.sort().map((name) => [name, readFileSync(name, 'latin1')]))
}

/** A record by hand. */
async function write(data: string, topic: TopicName, partition: number, key: string, value: Uint8Array): Promise<void> {
  const log = await openEmbeddedLog({ dir: join(data, 'log'), clock: createSystemClock() })
  const lane = await log.lane('by-hand')
  const unit = lane.begin('atomic')
  const batch = createRecordBatch()
  batch.add(Buffer.from(key), value, Date.now())
  unit.append(log.partition(topicName('weir', topic), partition), batch)
  const outcome = await unit.commit([])
  assert.equal(outcome.kind, 'committed')
  await lane.close()
  await log.close()
}
