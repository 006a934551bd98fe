import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createLinksWriter, iterateLinks, type Link, maxLinks, maxLinksBytes, readLinks } from '../../schemas/links.ts'
import { linkFlags, linkKinds } from '../../schemas/types.ts'

const link = fc.record(
  {
    kind: fc.constantFrom(...linkKinds),
    flags: fc.nat(255),
    href: fc.oneof(fc.string({ unit: 'binary' }), fc.string({ minLength: 100, maxLength: 400 })),
  },
  { noNullPrototype: true },
)
const seed = Number(process.env.WEIR_TEST_SEED ?? Date.now() % 1_000_000)

function write(links: readonly Link[]): Buffer {
  const writer = createLinksWriter()
  for (const { kind, flags, href } of links) assert.ok(writer.add(kind, flags, href))
  assert.equal(writer.count, links.length)
  return writer.bytes()
}

test('links come back as they were, as strings and as views', () => {
  fc.assert(
    fc.property(fc.array(link), (links) => {
      const blob = write(links)
      assert.deepEqual([...iterateLinks(blob)], links)
      const viewed: Link[] = []
      readLinks(new Uint8Array(blob), (kind, flags, start, end) => {
        viewed.push({ kind, flags, href: blob.toString('utf8', start, end) })
      })
      assert.deepEqual(viewed, links)
    }),
    { seed },
  )
})

test('the layout is u8 kind, u8 flags, varint length, UTF-8', () => {
  const long = 'x'.repeat(300)
  const blob = write([
    { kind: 'redirect', flags: linkFlags.seedChain, href: 'ü' },
    { kind: 'anchor', flags: 0, href: long },
  ])
  assert.deepEqual([...blob.subarray(0, 9)], [2, 2, 2, 0xc3, 0xbc, 0, 0, 0xac, 0x02])
  assert.equal(blob.length, 9 + 300)
})

test('over 5,000 links are counted, not kept', () => {
  const writer = createLinksWriter()
  for (let i = 0; i < maxLinks; i++) assert.equal(writer.add('anchor', 0, `/${i}`), true)
  assert.equal(writer.add('anchor', 0, '/more'), false)
  assert.equal(writer.add('anchor', 0, '/more'), false)
  assert.deepEqual([writer.count, writer.excessCount], [maxLinks, 2])
  assert.equal([...iterateLinks(writer.bytes())].length, maxLinks)
  writer.reset()
  assert.deepEqual([writer.count, writer.excessCount, writer.bytes().length], [0, 0, 0])
  assert.equal(writer.add('anchor', 0, '/again'), true)
})

test('over 256 KiB a link is counted, not kept; a shorter one may still fit', () => {
  const writer = createLinksWriter()
  assert.equal(writer.add('anchor', 0, 'x'.repeat(maxLinksBytes)), false)
  assert.equal(writer.add('anchor', 0, 'x'.repeat(maxLinksBytes - 5)), true)
  assert.equal(writer.bytes().length, maxLinksBytes)
  assert.equal(writer.add('anchor', 0, ''), false)
  assert.deepEqual([writer.count, writer.excessCount], [1, 2])
})

test('a blob that is cut or has an endless length is an error; a kind of the future is an anchor', () => {
  const blob = write([
    { kind: 'frame', flags: 1, href: '/a' },
    { kind: 'anchor', flags: 0, href: 'y'.repeat(200) },
  ])
  for (let length = 1; length < blob.length; length++) {
    if (length === 5) continue // exactly the first link
    assert.throws(() => [...iterateLinks(blob.subarray(0, length))], { code: 'links-malformed' }, String(length))
  }
  assert.throws(() => [...iterateLinks(Buffer.from([0, 0, 0x80, 0x80, 0x80, 0x80, 0x01]))], {
    code: 'links-malformed',
    message: /byte 0 of 7/,
  })
  assert.deepEqual([...iterateLinks(Buffer.from([200, 0, 1, 0x61]))], [{ kind: 'anchor', flags: 0, href: 'a' }])
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 50 }), (bytes) => {
      try {
        readLinks(bytes, (_kind, _flags, start, end) => assert.ok(start <= end && end <= bytes.length))
      } catch (error) {
        assert.equal((error as { code: string }).code, 'links-malformed')
      }
    }),
    { seed },
  )
})
