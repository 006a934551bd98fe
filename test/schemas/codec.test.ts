import assert from 'node:assert/strict'
import { test } from 'node:test'
import avsc from 'avsc'
import fc from 'fast-check'
import { bytesSerde, fingerprintOf, readSchemaFile, stringSerde, topicSerde } from '../../schemas/codec.ts'
import { crc64Avro } from '../../schemas/fingerprint.ts'
import type { Control, Fetched, PageState, Parsed } from '../../schemas/types.ts'
import { topics } from '../../topology/topics.ts'
import { samples, type TopicValues, withBuffers } from './samples.ts'

const seed = Number(process.env.WEIR_TEST_SEED ?? Date.now() % 1_000_000)
const names = Object.keys(samples) as (keyof TopicValues)[]
const sampleOf = <K extends keyof TopicValues>(name: K): TopicValues[K] =>
  fc.sample(samples[name], { seed: 1, numRuns: 1 })[0]!

test('every topic with a schema has samples, and its fields are those of the TypeScript type, in order', () => {
  assert.deepEqual([...names].sort(), topics.flatMap((t) => t.schema ?? []).sort())
  for (const name of names) {
    const { fields } = readSchemaFile(`${name}.avsc`) as { fields: { name: string }[] }
    assert.deepEqual(
      fields.map((f) => f.name),
      Object.keys(sampleOf(name)),
      name,
    )
  }
})

for (const name of names) {
  test(`${name}: any value comes back as it was`, () => {
    const serde = topicSerde<unknown>(name)
    fc.assert(
      fc.property(samples[name] as fc.Arbitrary<unknown>, (value) => {
        assert.deepEqual(serde.deserialize(serde.serialize(value)), withBuffers(value))
      }),
      { seed, numRuns: 100 },
    )
  })

  test(`${name}: bytes cut anywhere, or too many, are an error and not a value`, () => {
    const serde = topicSerde<unknown>(name)
    for (const value of fc.sample(samples[name] as fc.Arbitrary<unknown>, { seed, numRuns: 5 })) {
      const bytes = serde.serialize(value)
      for (let length = 0; length < bytes.length; length++) {
        assert.throws(
          () => serde.deserialize(bytes.subarray(0, length)),
          { name: 'SchemaError', code: length < 10 ? 'not-avro' : 'malformed' },
          `${length} of ${bytes.length}`,
        )
      }
      assert.throws(() => serde.deserialize(Buffer.concat([bytes, Buffer.from([0])])), { code: 'malformed' })
    }
  })

  test(`${name}: random bytes end in a value or an error, at once`, () => {
    const serde = topicSerde<unknown>(name)
    const header = serde.serialize(sampleOf(name)).subarray(0, 10)
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (body) => {
        try {
          serde.deserialize(Buffer.concat([header, body]))
        } catch (error) {
          assert.equal((error as { code: string }).code, 'malformed')
        }
      }),
      { seed, numRuns: 300 },
    )
  })
}

test("the encoding is Avro's: another reader of the plain schema finds the same values", () => {
  const serde = topicSerde<PageState>('page-states')
  const value = { ...sampleOf('page-states'), state: 'parked', reason: 'back-off', since: 1e12 } satisfies PageState
  const bytes = Buffer.from(serde.serialize(value))
  const plain = avsc.Type.forSchema(readSchemaFile('page-states.avsc') as avsc.Type)
  assert.deepEqual([...bytes.subarray(0, 2)], [0xc3, 0x01])
  assert.equal(bytes.subarray(2, 10).compare(crc64Avro(JSON.stringify(plain.schema()))), 0)
  const read = plain.fromBuffer(bytes.subarray(10))
  assert.equal(read.state, 'parked')
  assert.equal(read.reason, 'back_off')
  assert.equal(read.since, 1e12)
  assert.equal(read.depth, value.depth)
})

test('CRC-64-AVRO of the published examples', () => {
  // From Avro's own schema tests: the fingerprints of "null", "int" and a fixed.
  for (const [form, expected] of [
    ['"null"', 7195948357588979594n],
    ['"boolean"', -6970731678124411036n],
    ['"int"', 8247732601305521295n],
    ['"string"', -8142146995180207161n],
  ] as const) {
    assert.equal(crc64Avro(form).readBigInt64LE(), expected, form)
  }
  assert.equal(fingerprintOf(avsc.Type.forSchema('int')).readBigInt64LE(), 8247732601305521295n)
})

test('an unknown schema is refused with its name and fingerprint', () => {
  const bytes = Buffer.from(topicSerde<Control>('controls').serialize(sampleOf('controls')))
  bytes[5]! ^= 1
  assert.throws(() => topicSerde('controls').deserialize(bytes), {
    code: 'schema-unknown',
    message: new RegExp(`controls.*${bytes.toString('hex', 2, 10)}`),
  })
  assert.throws(() => topicSerde('fetched').deserialize(topicSerde('controls').serialize(sampleOf('controls'))), {
    code: 'schema-unknown',
  })
  assert.throws(() => topicSerde('no-such-topic'), { code: 'schema-missing', message: /no-such-topic\.avsc/ })
})

test('a value that does not fit is refused, and the field is named', () => {
  const state = sampleOf('page-states')
  const bad = (value: object, field: RegExp): void => {
    assert.throws(() => topicSerde('page-states').serialize(value), { code: 'invalid-value', message: field })
  }
  bad({ ...state, since: 1.5 }, /page-states: since/)
  bad({ ...state, sequence: -(2 ** 52) - 1 }, /sequence/)
  bad({ ...state, reason: 'constructor' }, /reason/)
  bad({ ...state, contentHash: new Uint8Array(15) }, /contentHash/)
  bad({ ...state, depth: null }, /depth/)
  bad({ ...state, evidence: 7 }, /evidence/)
  const fetched = sampleOf('fetched')
  const archive = { file: 'f', offset: 0.5, length: 1 }
  assert.throws(() => topicSerde('fetched').serialize({ ...fetched, archive }), { message: /archive\.offset/ })
})

test('what is serialized is its own, whatever is serialized next', () => {
  const serde = topicSerde<Parsed>('parsed')
  const small = { ...sampleOf('parsed'), text: 'small' }
  const large = { ...small, text: 'x'.repeat(300_000) }
  const first = serde.serialize(small)
  const copy = Buffer.from(first)
  const second = serde.serialize(large)
  assert.equal(serde.deserialize(second).text.length, 300_000)
  assert.equal(copy.compare(first), 0)
  assert.equal(serde.deserialize(first).text, 'small')
})

test('what is deserialized outlives the bytes', () => {
  const serde = topicSerde<Fetched>('fetched')
  const value = { ...sampleOf('fetched'), robotsBody: Buffer.from('body'), payloadDigest: Buffer.alloc(20, 1) }
  const bytes = Buffer.from(serde.serialize(value))
  const read = serde.deserialize(new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length))
  bytes.fill(0)
  assert.equal(Buffer.from(read.robotsBody!).toString(), 'body')
  assert.deepEqual([...read.payloadDigest!], new Array(20).fill(1))
})

test('a count that cannot be true ends at once', () => {
  const serde = topicSerde<Control>('controls')
  const bytes = Buffer.from(
    serde.serialize({ ...sampleOf('controls'), host: null, site: null, ports: [], why: '', at: 0 }),
  )
  // kind, mode, host, site, then the block count of `ports`: 2^40 items.
  const lie = Buffer.concat([
    bytes.subarray(0, 14),
    Buffer.from([0x80, 0x80, 0x80, 0x80, 0x80, 0x40]),
    bytes.subarray(15),
  ])
  assert.throws(() => serde.deserialize(lie), { code: 'malformed', message: /items in \d+ bytes/ })
})

test('lone surrogates are written well formed', () => {
  const serde = topicSerde<Control>('controls')
  const read = serde.deserialize(serde.serialize({ ...sampleOf('controls'), why: 'a\ud800b' }))
  assert.equal(read.why, 'a\ufffdb')
})

test('strings and bytes', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (value) => {
      assert.equal(stringSerde.deserialize(stringSerde.serialize(value)), value)
    }),
    { seed },
  )
  assert.equal(stringSerde.deserialize(Buffer.from('a\ufffdb')), 'a\ufffdb')
  assert.throws(() => stringSerde.deserialize(Buffer.from([0x61, 0xff])), { code: 'malformed' })
  const bytes = Buffer.from([1, 2, 3])
  const read = bytesSerde.deserialize(bytes)
  bytes.fill(0)
  assert.deepEqual([...read], [1, 2, 3])
})
