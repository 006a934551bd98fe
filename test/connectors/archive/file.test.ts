import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mock, test } from 'node:test'
import { type ArchiveEvent, createFileArchive, isFileOf } from '../../../connectors/archive/file.ts'
import { recoverSegments } from '../../../connectors/archive/recover.ts'
import { headerOf, readWarcFile, type WarcRecord } from '../../../connectors/archive/warc-reader.ts'
import { createVirtualClock } from '../../../connectors/clock/virtual.ts'
import { archiveSuite, exchangeOf } from '../../suites/archive.ts'

const startMs = Date.UTC(2026, 0, 2, 3, 4, 5, 6)
const temporary = (): string => fs.mkdtempSync(join(tmpdir(), 'weir-archive-'))
const remove = (dir: string): void => fs.rmSync(dir, { recursive: true, force: true })

function openArchive(dir: string, more: Partial<Parameters<typeof createFileArchive>[0]> = {}) {
  const clock = createVirtualClock(startMs)
  const events: ArchiveEvent[] = []
  const archive = createFileArchive({
    dir,
    crawl: 'my-crawl',
    clock,
    software: 'weir/0.1.0',
    operator: 'Ops <mailto:ops@example.org>',
    onEvent: (event) => events.push(event),
    ...more,
  })
  return { archive, clock, events }
}

const recordsOf = (dir: string, file: string): WarcRecord[] => [...readWarcFile(join(dir, file))]
const sha1 = (bytes: Uint8Array): string => createHash('sha1').update(bytes).digest('hex')
function base32Hex(label: string): string {
  const bits = [...label.slice('sha1:'.length)]
    .map((c) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(c).toString(2).padStart(5, '0'))
    .join('')
  return (bits.match(/.{8}/g) ?? []).map((b) => Number.parseInt(b, 2).toString(16).padStart(2, '0')).join('')
}

archiveSuite({
  name: 'file',
  open() {
    const dir = temporary()
    return { archive: openArchive(dir).archive, dispose: () => remove(dir) }
  },
})

test('a file is warcinfo, then response and request an exchange, each with the fields of WARC 1.1', async () => {
  const dir = temporary()
  const { archive } = openArchive(dir)
  const body = '<p>hello</p>'.repeat(200)
  const ref = archive.append(exchangeOf(body, { truncated: 'length' }))
  archive.append(
    exchangeOf(body, {
      revisit: {
        profile: 'identical-payload-digest',
        refersToUrl: 'http://shop.example/a b',
        refersToDateMs: startMs,
      },
    }),
  )
  await archive.close()
  assert.equal(ref.file, 'my-crawl-20260102030405006-0-00000.warc.gz')
  assert.deepEqual(fs.readdirSync(dir), [ref.file])
  const [info, response, request, revisit, request2] = recordsOf(dir, ref.file)
  const field = (record: WarcRecord | undefined, name: string): string | undefined => headerOf(record!.headers, name)

  assert.equal(info!.type, 'warcinfo')
  assert.equal(field(info, 'WARC-Filename'), ref.file)
  assert.match(info!.block.toString(), /^software: weir\/0\.1\.0\r\nformat: WARC File Format 1\.1\r\n/)
  assert.match(info!.block.toString(), /operator: Ops <mailto:ops@example.org>\r\n/)

  assert.deepEqual([response!.offset, response!.length, response!.wholeMember], [ref.offset, ref.length, true])
  assert.equal(response!.version, '1.1')
  assert.equal(field(response, 'WARC-Target-URI'), 'http://shop.example/a?b=1')
  assert.equal(field(response, 'WARC-Date'), '2026-01-02T03:04:05.678Z')
  assert.equal(field(response, 'WARC-IP-Address'), '203.0.113.7')
  assert.equal(field(response, 'WARC-Truncated'), 'length')
  assert.equal(field(response, 'WARC-Warcinfo-ID'), field(info, 'WARC-Record-ID'))
  assert.equal(field(response, 'Content-Type'), 'application/http;msgtype=response')
  assert.equal(base32Hex(field(response, 'WARC-Payload-Digest')!), sha1(Buffer.from(body)))

  assert.equal(request!.type, 'request')
  assert.equal(field(request, 'WARC-Concurrent-To'), field(response, 'WARC-Record-ID'))
  assert.equal(field(request, 'Content-Type'), 'application/http;msgtype=request')
  assert.match(request!.block.toString(), /^GET \/a\?b=1 HTTP\/1\.1\r\n/)

  assert.equal(revisit!.type, 'revisit')
  assert.equal(field(revisit, 'WARC-Profile'), 'http://netpreserve.org/warc/1.1/revisit/identical-payload-digest')
  assert.equal(field(revisit, 'WARC-Refers-To-Target-URI'), 'http://shop.example/a%20b')
  assert.equal(field(revisit, 'WARC-Refers-To-Date'), '2026-01-02T03:04:05.006Z')
  assert.equal(field(revisit, 'WARC-Truncated'), undefined)
  assert.ok(revisit!.block.toString().endsWith(`Content-Length: ${body.length}\r\n\r\n`))

  const all = [info, response, request, revisit, request2]
  for (const record of all) assert.equal(base32Hex(field(record, 'WARC-Block-Digest')!), sha1(record!.block))
  const ids = all.map((record) => field(record, 'WARC-Record-ID')!)
  assert.equal(new Set(ids).size, 5)
  for (const id of ids) assert.match(id, /^<urn:uuid:[\da-f]{8}-[\da-f]{4}-8[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}>$/)
  remove(dir)
})

test('the same exchanges give the same bytes', async () => {
  const contents: string[] = []
  for (let i = 0; i < 2; i++) {
    const dir = temporary()
    const { archive } = openArchive(dir)
    for (const body of ['a', 'b'.repeat(5_000), '']) archive.append(exchangeOf(body))
    await archive.close()
    contents.push(
      fs
        .readdirSync(dir)
        .map((file) => sha1(fs.readFileSync(join(dir, file))))
        .join(),
    )
    remove(dir)
  }
  assert.equal(contents[0], contents[1])
})

test('a segment ends by size and by age; what is ended is closed at the next sync', async () => {
  const dir = temporary()
  const { archive, clock, events } = openArchive(dir, {
    maxSegmentBytes: 3_000,
    maxSegmentMs: 60_000,
  })
  const files = [archive.append(exchangeOf('1')).file]
  while (files.at(-1) === files[0]) files.push(archive.append(exchangeOf('x')).file)
  const second = files.at(-1)!
  assert.deepEqual(fs.readdirSync(dir).filter((f) => f.endsWith('.open')).length, 2)
  await archive.sync()
  assert.deepEqual(
    fs.readdirSync(dir).filter((f) => f.endsWith('.open')),
    [`${second}.open`],
  )
  clock.advanceTo(59_999)
  assert.equal(archive.append(exchangeOf('y')).file, second)
  clock.advanceTo(60_000)
  const third = archive.append(exchangeOf('z')).file
  assert.equal(third, 'my-crawl-20260102030505006-0-00002.warc.gz')
  await archive.close()
  assert.deepEqual(fs.readdirSync(dir), [files[0], second, third])
  assert.deepEqual(
    events.map((e) => `${e.kind} ${e.file === files[0] ? 1 : e.file === second ? 2 : 3}`),
    [
      'segment-opened 1',
      'segment-opened 2',
      'segment-closed 1',
      'segment-opened 3',
      'segment-closed 2',
      'segment-closed 3',
    ],
  )
  for (const file of fs.readdirSync(dir)) assert.equal(recordsOf(dir, file)[0]!.type, 'warcinfo')
  remove(dir)
})

test('a restart at the same moment begins a new file', async () => {
  const dir = temporary()
  const first = openArchive(dir)
  const ref1 = first.archive.append(exchangeOf('one'))
  await first.archive.close()
  const second = openArchive(dir)
  const ref2 = second.archive.append(exchangeOf('two'))
  assert.equal(ref2.file, 'my-crawl-20260102030405006-0-00001.warc.gz')
  assert.equal((await second.archive.read(ref1)).rawBody.toString(), 'one')
  await second.archive.close()
  assert.equal(fs.existsSync(join(dir, `${ref1.file}.open`)), false)
  remove(dir)
})

test('P1: a torn tail is cut back to the last whole record, wherever it is torn', async () => {
  const dir = temporary()
  const first = openArchive(dir)
  const kept = first.archive.append(exchangeOf('kept '.repeat(300)))
  await first.archive.sync()
  const later = first.archive.append(exchangeOf('later '.repeat(300)))
  const path = join(dir, kept.file)
  const whole = fs.readFileSync(path)
  const mark = fs.readFileSync(`${path}.open`)
  const ends = recordsOf(dir, kept.file).map((r) => r.offset + r.length)
  assert.equal(Number(mark.toString()), later.offset)
  await first.archive.close()

  for (let size = later.offset; size <= whole.length; size += 37) {
    for (const [what, tail] of [
      ['cut', Buffer.alloc(0)],
      ['zeros', Buffer.alloc(100)],
    ] as const) {
      fs.writeFileSync(path, Buffer.concat([whole.subarray(0, size), tail]))
      fs.writeFileSync(`${path}.open`, mark)
      const { archive, events } = openArchive(dir)
      const expected = ends.findLast((end) => end <= size)!
      assert.equal(fs.statSync(path).size, expected, `${what} at ${size}`)
      assert.equal(fs.existsSync(`${path}.open`), false)
      assert.deepEqual(
        events,
        expected === size + tail.length
          ? []
          : [
              {
                kind: 'tail-cut',
                file: kept.file,
                fromBytes: size + tail.length,
                toBytes: expected,
              },
            ],
      )
      assert.equal((await archive.read(kept)).rawBody.toString(), 'kept '.repeat(300))
      assert.equal(recordsOf(dir, kept.file).length, ends.indexOf(expected) + 1)
      await archive.close()
    }
  }
  remove(dir)
})

test('P1: a broken mark means that the whole file is looked at; a file without a record goes', async () => {
  const dir = temporary()
  const first = openArchive(dir)
  const ref = first.archive.append(exchangeOf('kept'))
  await first.archive.close()
  const path = join(dir, ref.file)
  const whole = fs.readFileSync(path)
  for (const mark of ['', 'garbage', '9999999999999999']) {
    fs.writeFileSync(path, Buffer.concat([whole, whole.subarray(0, 20)]))
    fs.writeFileSync(`${path}.open`, mark)
    recoverSegments(dir, isFileOf('my-crawl', '0'))
    assert.equal(fs.statSync(path).size, whole.length)
  }
  fs.writeFileSync(path, whole.subarray(0, 30))
  fs.writeFileSync(`${path}.open`, '')
  const events: unknown[] = []
  recoverSegments(dir, isFileOf('my-crawl'), (event) => events.push(event))
  assert.deepEqual(events, [{ kind: 'tail-cut', file: ref.file, fromBytes: 30, toBytes: 0 }])
  assert.deepEqual(fs.readdirSync(dir), [])
  remove(dir)
})

test("another lane's and another crawl's open files are left alone", async () => {
  const dir = temporary()
  const one = openArchive(dir, { lane: '1' })
  const ref = one.archive.append(exchangeOf('one'))
  fs.appendFileSync(join(dir, ref.file), 'being written')
  const size = fs.statSync(join(dir, ref.file)).size
  await openArchive(dir, { lane: '2' }).archive.close()
  await openArchive(dir, { lane: '1', crawl: 'my' }).archive.close()
  assert.equal(fs.statSync(join(dir, ref.file)).size, size)
  await one.archive.close()
  assert.equal(recordsOf(dir, ref.file).length, 3)
  remove(dir)
})

test('a full disk: a clear error, nothing half-written, and it goes on when there is room', async () => {
  const dir = temporary()
  const { archive } = openArchive(dir)
  const before = archive.append(exchangeOf('before'))
  const size = fs.statSync(join(dir, before.file)).size
  const { writevSync } = fs
  const full = mock.method(fs, 'writevSync', (fd: number, pieces: Buffer[], position: number) => {
    writevSync(fd, pieces.slice(0, 1), position)
    throw Object.assign(new Error('ENOSPC: no space left on device, write'), {
      code: 'ENOSPC',
    })
  })
  syncBuiltinESMExports()
  try {
    assert.throws(() => archive.append(exchangeOf('lost')), {
      code: 'disk-full',
      message: /no space left/,
    })
    assert.equal(fs.statSync(join(dir, before.file)).size, size)
    const other = openArchive(dir, { lane: 'b' })
    assert.throws(() => other.archive.append(exchangeOf('lost')), {
      code: 'disk-full',
    })
    assert.deepEqual(fs.readdirSync(dir), [before.file, `${before.file}.open`])
    await other.archive.close()
  } finally {
    full.mock.restore()
    syncBuiltinESMExports()
  }
  const after = archive.append(exchangeOf('after'))
  assert.equal(after.offset, size)
  await archive.close()
  assert.equal((await archive.read(after)).rawBody.toString(), 'after')
  assert.equal(recordsOf(dir, before.file).length, 5)
  remove(dir)
})

test('syncs that are asked for while one runs share the next', async () => {
  const dir = temporary()
  const { archive } = openArchive(dir)
  archive.append(exchangeOf('one'))
  const first = archive.sync()
  archive.append(exchangeOf('two'))
  const second = archive.sync()
  assert.notEqual(second, first)
  assert.equal(archive.sync(), second)
  await second
  const [file] = fs.readdirSync(dir)
  const mark = fs.readFileSync(join(dir, `${file}.open`), 'latin1')
  assert.equal(Number(mark), fs.statSync(join(dir, file!)).size)
  assert.equal(archive.sync(), undefined)
  await archive.close()
  remove(dir)
})

test('a pointer cannot leave the folder', async () => {
  const dir = temporary()
  const { archive } = openArchive(join(dir, 'inner'))
  const ref = archive.append(exchangeOf('one'))
  for (const file of [`../inner/${ref.file}`, `/etc/passwd`, `..`, `.${ref.file}`]) {
    await assert.rejects(archive.read({ ...ref, file }), {
      code: 'bad-pointer',
    })
  }
  const [, , request] = recordsOf(join(dir, 'inner'), ref.file)
  await assert.rejects(
    archive.read({
      file: ref.file,
      offset: request!.offset,
      length: request!.length,
    }),
    {
      code: 'bad-pointer',
      message: /not a response or revisit/,
    },
  )
  await archive.close()
  remove(dir)
})
