import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type DueHost, serveOrder } from '../../../processors/schedule/due.ts'
import {
  hostScheduledPartitioner,
  literalAddress,
  targetOf,
  tombstoneKey,
  visitKeySerde,
} from '../../../processors/schedule/gate.ts'
import * as keys from '../../../processors/schedule/keys.ts'
import { allClosed, closeBit, isOpen, openBits } from '../../../processors/schedule/records.ts'
import { partitionOf } from '../../../schemas/hash.ts'
import type { Visit } from '../../../schemas/types.ts'

const seed = Number(process.env.WEIR_TEST_SEED ?? 20260105)
const hash = (n: number) => Buffer.alloc(16, n)
const inRange = (key: Uint8Array, range: keys.KeyRange) =>
  Buffer.compare(key, range.from) >= 0 && Buffer.compare(key, range.to) < 0

test(`keys: byte order is the order of class and number, of time, of depth (seed ${seed})`, () => {
  const number = fc.nat({ max: 2 ** 31 - 1 })
  fc.assert(
    fc.property(number, number, fc.nat({ max: 15 }), fc.nat({ max: 15 }), (a, b, c, d) => {
      const queue = Buffer.compare(keys.queueKey('h', 0, c, a), keys.queueKey('h', 0, d, b))
      assert.equal(Math.sign(queue), Math.sign(c - d || a - b))
      const wait = Buffer.compare(keys.waitKey('h', a * 1000, hash(0)), keys.waitKey('h', b * 1000, hash(0)))
      assert.equal(Math.sign(wait), Math.sign(a - b))
      assert.equal(keys.queueKeyOrder(keys.queueKey('h', 3, c, a)), a)
      assert.equal(keys.queueKeyClass(keys.queueKey('h', 3, c, a)), c)
      assert.equal(keys.waitKeyTime(keys.waitKey('h', a * 1000, hash(7))), a * 1000)
      assert.equal(keys.dueKeyTime(keys.dueKey(a * 1000, 'h.test', true)), a * 1000)
      assert.equal(keys.dueKeyHost(keys.dueKey(a * 1000, 'h.test')), 'h.test')
    }),
    { seed },
  )
})

test('keys: a host’s ranges hold nothing of a host whose name begins alike, nor of another list', () => {
  const own = [
    keys.queueKey('a.test', 1, 15, 9),
    keys.waitKey('a.test', 5, hash(255)),
    keys.blockedKey('a.test', 1, 3, 5, hash(255)),
    keys.deepKey('a.test', 4, hash(255)),
    keys.leaseKey('a.test'),
  ]
  const other = [keys.queueKey('a.test.x', 1, 15, 9), keys.waitKey('a.tes', 5, hash(1)), keys.deepKey('b', 4, hash(1))]
  const ranges = [
    keys.queueRange('a.test', 1),
    keys.waitRange('a.test'),
    keys.blockedSince('a.test', 1, 3),
    keys.deepRange('a.test', null),
  ]
  ranges.forEach((range, i) => {
    for (const [j, key] of own.entries()) assert.equal(inRange(key, range), i === j, `${i} ${j}`)
    for (const key of other) assert.ok(!inRange(key, range))
  })
  assert.ok(inRange(keys.blockedKey('a.test', 1, 2, 5, hash(9)), keys.blockedBefore('a.test', 1, 3)))
  assert.ok(!inRange(keys.blockedKey('a.test', 1, 3, 5, hash(9)), keys.blockedBefore('a.test', 1, 3)))
  assert.ok(!inRange(keys.deepKey('a.test', 5, hash(9)), keys.deepRange('a.test', 4)))
  assert.ok(inRange(keys.deepKey('a.test', 4, hash(255)), keys.deepRange('a.test', 4)))
})

test('due: by class, then by age; each 16th is the longest due of the lower classes', () => {
  const at = (host: string, frontClass: number, dueAt: number): DueHost => ({ host, frontClass, dueAt })
  const top = Array.from({ length: 40 }, (_, i) => at(`t${i}`, 0, 100 + i))
  const low = [at('old', 9, 1), at('older', 5, 0)]
  const order = serveOrder([...low, ...top], 0).map((h) => h.host)
  assert.equal(order.length, 42)
  assert.equal(order[15], 'older')
  assert.equal(order[31], 'old')
  assert.deepEqual(order.slice(0, 3), ['t0', 't1', 't2'])
  assert.equal(new Set(order).size, 42)
  assert.deepEqual(serveOrder([...low, ...top], 15).map((h) => h.host)[0], 'older')
})

test('gate: the lowest IPv4, else IPv6 by /64; a mapped address is IPv4; what is no address is left out', () => {
  assert.deepEqual(targetOf(['203.0.113.7', '9.0.0.1', '2001:db8::1']), { address: '9.0.0.1', gate: 'a:9.0.0.1' })
  assert.deepEqual(targetOf(['2001:db8:1:2:ffff::9', '2001:db8:1:2::1']), {
    address: '2001:db8:1:2::1',
    gate: 'a6:2001:db8:1:2::/64',
  })
  assert.deepEqual(targetOf(['2001:db8::1']), { address: '2001:db8::1', gate: 'a6:2001:db8::/64' })
  assert.deepEqual(targetOf(['::ffff:192.0.2.3']), { address: '192.0.2.3', gate: 'a:192.0.2.3' })
  assert.equal(targetOf(['nonsense', '']), null)
  assert.equal(literalAddress('[2001:db8::1]'), '2001:db8::1')
  assert.equal(literalAddress('192.0.2.1'), '192.0.2.1')
  assert.equal(literalAddress('a.test'), null)
})

test('host-scheduled: visit and tombstone of one gate share a partition; the key written is the host', () => {
  const gate = 'a:192.0.2.1'
  const visit = hostScheduledPartitioner('a.test', { gate } as Visit, 64)
  assert.equal(visit, partitionOf(gate, 64))
  assert.equal(hostScheduledPartitioner(tombstoneKey('a.test', gate), null, 64), visit)
  assert.equal(Buffer.from(visitKeySerde.serialize(tombstoneKey('a.test', gate))).toString(), 'a.test')
  assert.equal(visitKeySerde.deserialize(visitKeySerde.serialize('a.test')), 'a.test')
})

test('lease bits', () => {
  const lease = { size: 10, open: openBits(10) } as Parameters<typeof isOpen>[0]
  for (let i = 0; i < 10; i++) {
    assert.ok(isOpen(lease, i))
    assert.ok(!allClosed(lease))
    closeBit(lease, i)
    assert.ok(!isOpen(lease, i))
  }
  assert.ok(allClosed(lease))
  assert.ok(!isOpen(lease, 10) && !isOpen(lease, -1))
})
