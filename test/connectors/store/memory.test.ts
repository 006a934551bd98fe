import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMemoryStoreProvider } from '../../../connectors/store/memory.ts'
import { createSortedMap } from '../../../connectors/store/sorted-map.ts'
import { storeSuite } from '../../suites/store.ts'

storeSuite({
  name: 'memory',
  open() {
    const provider = createMemoryStoreProvider()
    return { provider, reopen: () => provider, dispose() {} }
  },
})

test('many keys in, out and ranged over from the start keep their order', () => {
  const map = createSortedMap()
  const key = Buffer.alloc(4)
  const put = (n: number): void => {
    key.writeUInt32BE(n)
    map.set(key, key)
  }
  // The order exists from the first range on: all that follows goes through its chunks.
  assert.deepEqual([...map.range(undefined, undefined, false)], [])
  const count = 50_000
  for (let i = 0; i < count; i++) put(Math.imul(i, 2_654_435_761) >>> 0)
  let least = -1
  // As a due queue does: take the first, put it back behind others.
  for (let i = 0; i < count; i++) {
    const [first] = map.range(undefined, undefined, false).next().value!
    const n = Buffer.from(first).readUInt32BE()
    assert.ok(n >= least)
    least = n
    map.delete(first)
  }
  assert.equal(map.size, 0)
  assert.deepEqual([...map.range(undefined, undefined, true)], [])
})
