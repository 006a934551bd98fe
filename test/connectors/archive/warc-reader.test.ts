import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { gzipMember, readGzipMember } from '../../../connectors/archive/gzip.ts'
import { parseHttpResponse } from '../../../connectors/archive/http-head.ts'
import { headerOf, readWarcFile, type WarcRecord } from '../../../connectors/archive/warc-reader.ts'

const data = join(process.env.WEIR_TEST_DATA ?? join(import.meta.dirname, '../../../../shared/suites'), 'warc')
const skip = existsSync(data) ? false : 'no test data: set WEIR_TEST_DATA to the folder that has warc/'

function readAll(
  path: string,
  options?: Parameters<typeof readWarcFile>[1],
): { records: WarcRecord[]; error: Error | null } {
  const records: WarcRecord[] = []
  try {
    for (const record of readWarcFile(path, options)) records.push(record)
  } catch (error) {
    return { records, error: error as Error }
  }
  return { records, error: null }
}

test("others' files are read: plain and by member, the same records", {
  skip,
}, () => {
  const plain = readAll(join(data, 'example.warc'))
  const zipped = readAll(join(data, 'example.warc.gz'))
  assert.equal(plain.error ?? zipped.error, null)
  assert.deepEqual(
    plain.records.map((r) => [r.offset, r.type, r.version]),
    [
      [0, 'warcinfo', '1.0'],
      [488, 'warcinfo', '1.0'],
      [1197, 'response', '1.0'],
      [2566, 'request', '1.0'],
      [3370, 'revisit', '1.0'],
      [4316, 'request', '1.0'],
    ],
  )
  assert.deepEqual(
    zipped.records.map((r) => r.offset),
    [0, 353, 784, 2012, 2621, 3207],
  )
  assert.deepEqual(
    zipped.records.map((r) => headerOf(r.headers, 'warc-record-id')),
    plain.records.map((r) => headerOf(r.headers, 'warc-record-id')),
  )
  const http = parseHttpResponse(zipped.records[2]!.block)
  assert.equal(http.status, 200)
  assert.equal(headerOf(http.headers, 'content-type'), 'text/html')
  // From any record on.
  assert.equal(readAll(join(data, 'example.warc.gz'), { from: 2621 }).records.length, 2)
})

test('a file that is one single member has its records, none of which can be pointed at', {
  skip,
}, () => {
  const { records, error } = readAll(join(data, 'example-bad-non-chunked.warc.gz'))
  assert.equal(error, null)
  assert.equal(records.length, 6)
  assert.ok(records.every((r) => !r.wholeMember))
})

test('the blocks of others have the digests that they say', { skip }, () => {
  const { records } = readAll(join(data, 'example-iana.org-chunked.warc'))
  const withDigest = records.filter((r) => headerOf(r.headers, 'warc-block-digest') !== undefined)
  assert.deepEqual(
    withDigest.map((r) => r.type),
    ['response', 'request'],
  )
  for (const record of withDigest) {
    const digest = createHash('sha1').update(record.block).digest('hex')
    assert.equal(headerOf(record.headers, 'WARC-Block-Digest'), `sha1:${digest}`)
  }
})

test('W3: a target with spaces, and a Content-Length that is not that of the block', {
  skip,
}, () => {
  const spaces = readAll(join(data, 'example-space-in-target-uri.warc.gz'))
  assert.equal(spaces.error, null)
  assert.equal(headerOf(spaces.records[1]!.headers, 'warc-target-uri'), 'file:///example with spaces.png')
  const cut = readAll(join(data, 'example-trunc.warc'))
  assert.equal(cut.records.length, 2)
  assert.match(cut.error!.message, /1197.*Content-Length/)
  assert.equal((cut.error as Error & { code: string }).code, 'malformed')
  const chunks = readAll(join(data, 'example-wrong-chunks.warc.gz'))
  assert.match(chunks.error!.message, /a record in the gzip member at 0 is cut/)
})

test('what is not a record ends the reading with an error, at once and within bounds', () => {
  const dir = mkdtempSync(join(tmpdir(), 'weir-warc-'))
  const path = join(dir, 'x.warc')
  const record = 'WARC/1.1\r\nWARC-Type: resource\r\nContent-Length: 2\r\n\r\nhi\r\n\r\n'
  const cases: [string, Buffer | string, number, RegExp | null][] = [
    ['empty', '', 0, null],
    ['two', record + record, 2, null],
    ['cut in the block', record + record.slice(0, -5), 1, /cut at the end/],
    ['cut in the head', record + record.slice(0, 12), 1, /cut at the end/],
    ['no length', 'WARC/1.1\r\nWARC-Type: x\r\n\r\n\r\n\r\n', 0, /no Content-Length/],
    ['a length that is a lie', record.replace(': 2', ': 999999999999'), 0, /cut at the end/],
    ['negative length', record.replace(': 2', ': -2'), 0, /no Content-Length/],
    ['other text', 'hello world, this is no archive', 0, /no WARC header/],
    ['a head without an end', `WARC/1.1\r\n${'a: b\r\n'.repeat(30_000)}`, 0, /no WARC header/],
    [
      'a broken member',
      Buffer.concat([gzipSync(record), Buffer.from([0x1f, 0x8b, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9])]),
      1,
      /broken|cut/,
    ],
    ['text behind a member', Buffer.concat([gzipSync(record), Buffer.from('hello world')]), 1, /no gzip member/],
    ['a member that is no record', gzipSync('hello'), 0, /no WARC header/],
    ['a member with half a record', gzipSync(record + record.slice(0, 30)), 0, /cut/],
  ]
  for (const [what, content, count, message] of cases) {
    writeFileSync(path, content)
    const { records, error } = readAll(path)
    assert.equal(records.length, count, what)
    if (message === null) assert.equal(error, null, what)
    else assert.match(error?.message ?? '', message, what)
  }
  writeFileSync(path, gzipSync(Buffer.alloc(5_000_000)))
  assert.match(readAll(path, { maxRecordBytes: 1_000_000 }).error!.message, /over 1000000 bytes/)
  rmSync(dir, { recursive: true })
})

test('a gzip member holds what was put in, stored or deflated, with any optional header', () => {
  for (const size of [0, 1, 65_534, 65_535, 65_536, 200_000]) {
    const content = Buffer.alloc(size, 'abc')
    for (const store of [true, false]) {
      const member = Buffer.concat(gzipMember(content, store))
      const both = Buffer.concat([member, member])
      const read = readGzipMember(both, member.length, 1_000_000)!
      assert.equal(Buffer.compare(read.data, content), 0)
      assert.equal(read.end, both.length)
      assert.equal(readGzipMember(member.subarray(0, -1), 0, 1_000_000), null)
      const broken = Buffer.from(member)
      broken[member.length - 6]! ^= 1
      assert.throws(() => readGzipMember(broken, 0, 1_000_000), {
        code: 'malformed',
      })
    }
  }
  const plain = gzipSync('hello')
  const flags = 2 | 4 | 8 | 16
  const header = Buffer.concat([
    Buffer.from([0x1f, 0x8b, 8, flags, 0, 0, 0, 0, 0, 3, 3, 0, 1, 2, 3]),
    Buffer.from('name\0comment\0'),
    Buffer.from([9, 9]),
  ])
  const rich = Buffer.concat([header, plain.subarray(10)])
  assert.equal(readGzipMember(rich, 0, 100)!.data.toString(), 'hello')
  for (let i = 0; i < rich.length; i++) assert.equal(readGzipMember(rich.subarray(0, i), 0, 100), null, String(i))
})
