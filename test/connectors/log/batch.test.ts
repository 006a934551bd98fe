import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createRecordBatch, findOversize, fitRecords, readBatch, skipRecords } from '../../../connectors/log/batch.ts'
import type { Headers } from '../../../connectors/log/types.ts'

const input = { group: 'g', topic: 't', partition: 0 }
const bytesArb = fc.option(fc.uint8Array({ maxLength: 300 }), { nil: null })
const recordArb = fc.record({
  key: bytesArb,
  value: bytesArb,
  at: fc.double({ noNaN: true, noDefaultInfinity: true }),
  headers: fc.array(fc.tuple(fc.string({ maxLength: 20, unit: 'grapheme' }), fc.uint8Array({ maxLength: 20 })), {
    maxLength: 3,
  }),
})

test('what is added is read, in any order of asking, whatever the builder began with', () => {
  const builder = createRecordBatch(1)
  fc.assert(
    fc.property(fc.array(recordArb, { maxLength: 30 }), fc.nat(1000), (records, base) => {
      builder.clear()
      for (const { key, value, at, headers } of records) builder.add(key, value, at, headers)
      const bytes = Buffer.from(builder.bytes())
      assert.deepEqual([builder.count, builder.byteLength], [records.length, bytes.length])
      const batch = readBatch(bytes, input, base, builder.count)
      assert.deepEqual([batch.count, batch.nextOffset, batch.from], [records.length, base + records.length, input])
      for (const i of records.keys().toArray().toReversed()) {
        const { key, value, at, headers } = records[i]!
        assert.equal(batch.offset(i), base + i)
        assert.equal(batch.timestamp(i), at)
        assert.deepEqual(plain(batch.key(i)), plain(key))
        assert.deepEqual(plain(batch.value(i)), plain(value))
        assert.deepEqual(plainHeaders(batch.headers(i)), plainHeaders(headers))
      }
    }),
    { verbose: 1 },
  )
})

test('skipping and fitting agree with the records', () => {
  fc.assert(
    fc.property(fc.array(recordArb, { minLength: 1, maxLength: 20 }), fc.nat(3000), (records, maxBytes) => {
      const ends = [0]
      const builder = createRecordBatch()
      for (const { key, value, at, headers } of records) {
        builder.add(key, value, at, headers)
        ends.push(builder.byteLength)
      }
      const bytes = Buffer.from(builder.bytes())
      for (const [n, end] of ends.entries()) assert.equal(skipRecords(bytes, 0, n), end)
      const fit = ends.findLastIndex((end) => end <= maxBytes)
      assert.deepEqual(fitRecords(bytes, 0, records.length, maxBytes), [fit, ends[fit]])
      const half = records.length >> 1
      const rest = readBatch(bytes, input, half, records.length - half, ends[half])
      if (rest.count > 0) assert.deepEqual(plain(rest.value(0)), plain(records[half]!.value))
    }),
    { verbose: 1 },
  )
})

test('a batch refuses records that it does not have', () => {
  const builder = createRecordBatch()
  builder.add(null, null, 1)
  const batch = readBatch(Buffer.from(builder.bytes()), input, 0, 1)
  for (const i of [-1, 1, Number.NaN]) {
    assert.throws(() => batch.offset(i), RangeError)
    assert.throws(() => batch.value(i), RangeError)
  }
})

test('a batch that is cut short is an error, not a record', () => {
  const builder = createRecordBatch()
  builder.add(null, Buffer.from('value'), 1)
  builder.add(null, Buffer.from('value'), 1)
  const batch = readBatch(Buffer.from(builder.bytes().subarray(0, 30)), input, 0, 2)
  assert.throws(() => batch.value(1), RangeError)
})

test('the size of a record is that of its key, value and headers', () => {
  const builder = createRecordBatch()
  builder.add(Buffer.from('k1'), Buffer.alloc(8), 1)
  builder.add(Buffer.from('k2'), Buffer.alloc(9), 1)
  assert.equal(findOversize(builder.bytes(), 2, 11), undefined)
  const found = findOversize(builder.bytes(), 2, 10)
  assert.deepEqual([found?.key?.toString(), found?.sizeBytes], ['k2', 11])
})

test('a header name that does not fit is refused and adds nothing', () => {
  const builder = createRecordBatch()
  assert.throws(() => builder.add(null, null, 1, [['x'.repeat(65_536), Buffer.alloc(1)]]), RangeError)
  assert.deepEqual([builder.count, builder.byteLength], [0, 0])
})

function plain(bytes: Uint8Array | null): readonly number[] | null {
  return bytes === null ? null : [...bytes]
}

function plainHeaders(headers: Headers): unknown {
  return headers.map(([name, value]) => [name, plain(value)])
}
