import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createMemoryStoreProvider } from '../../../connectors/store/memory.ts'
import type { Write } from '../../../connectors/store/types.ts'
import { bytesSerde } from '../../../topology/streams/serdes.ts'
import { StagedStore } from '../../../topology/streams/store.ts'

const name = 'rows'
const builder = { name, keySerde: bytesSerde, valueSerde: bytesSerde }
const key = fc.uint8Array({ minLength: 1, maxLength: 2, max: 5 })
const bound = fc.option(key, { nil: undefined })
const action = fc.oneof(
  fc.record({ do: fc.constant('put' as const), key, value: fc.uint8Array({ maxLength: 3 }) }),
  fc.record({ do: fc.constant('delete' as const), key }),
  fc.record({ do: fc.constant('keep' as const) }),
  fc.record({ do: fc.constant('rollback' as const) }),
  fc.record({ do: fc.constant('commit' as const) }),
  fc.record({
    do: fc.constant('range' as const),
    from: bound,
    to: bound,
    reverse: fc.boolean(),
    limit: fc.option(fc.nat(4), { nil: undefined }),
  }),
)

test('reads and ranges merge staged and committed entries as a model does', () => {
  fc.assert(
    fc.property(fc.array(action, { maxLength: 80 }), (actions) => {
      const taskStore = createMemoryStoreProvider().open('app', '0_0', [name])
      const store = new StagedStore(builder, taskStore, 1 << 20)
      let model = new Map<string, string>()
      let saved = new Map(model)
      for (const a of actions) {
        if (a.do === 'put') {
          store.put(a.key, a.value)
          model.set(hex(a.key), hex(a.value))
        } else if (a.do === 'delete') {
          store.delete(a.key)
          model.delete(hex(a.key))
        } else if (a.do === 'keep') {
          store.staged.keep()
          saved = new Map(model)
        } else if (a.do === 'rollback') {
          store.staged.rollback()
          model = new Map(saved)
        } else if (a.do === 'commit') {
          store.staged.keep()
          saved = new Map(model)
          const writes: Write[] = []
          for (const e of store.staged.entries()) writes.push([name, e.key, e.value])
          taskStore.apply(writes, new Map())
          store.staged.clear()
          assert.equal(store.staged.bytes, 0)
          assert.equal(store.approximateNumEntries(), model.size)
        } else {
          const limit = a.limit === undefined ? {} : { limit: a.limit }
          const found = [...store.range(a.from, a.to, { reverse: a.reverse, ...limit })].map(([k, v]) => [
            hex(k),
            hex(v),
          ])
          assert.deepEqual(found, rangeOf(model, a.from, a.to, a.reverse, a.limit))
        }
        for (const [k, v] of model) assert.equal(hex(store.get(Buffer.from(k, 'hex'))), v)
      }
    }),
    { numRuns: 300 },
  )
})

test('entries written during a range are met when they lie ahead', () => {
  const taskStore = createMemoryStoreProvider().open('app', '0_0', [name])
  const store = new StagedStore(builder, taskStore, 1 << 20)
  const at = (n: number) => Uint8Array.of(n)
  taskStore.apply(
    [2, 4].map((n): Write => [name, at(n), at(n)]),
    new Map(),
  )
  store.put(at(3), at(3))
  const seen: number[] = []
  for (const [k] of store.range(undefined, undefined)) {
    seen.push(k[0]!)
    if (k[0] === 3) {
      store.put(at(1), at(1))
      store.put(at(5), at(5))
      store.delete(at(4))
    }
  }
  assert.deepEqual(seen, [2, 3, 5])
})

test('what the changelog or the store cannot take is refused at once', () => {
  const taskStore = createMemoryStoreProvider().open('app', '0_0', [name])
  const store = new StagedStore(builder, taskStore, 100)
  assert.throws(() => store.put(Uint8Array.of(1), new Uint8Array(100)), { code: 'record-too-large' })
  assert.throws(() => store.put(new Uint8Array(5_000), new Uint8Array(1)), { code: 'store-key' })
  assert.throws(() => store.get(new Uint8Array(0)), { code: 'store-key' })
  assert.equal(store.staged.size, 0)
})

function hex(bytes: Uint8Array | undefined): string {
  return bytes === undefined ? 'absent' : Buffer.from(bytes).toString('hex')
}

function rangeOf(
  model: ReadonlyMap<string, string>,
  from: Uint8Array | undefined,
  to: Uint8Array | undefined,
  reverse: boolean,
  limit: number | undefined,
): string[][] {
  // Hexadecimal text sorts as its bytes do.
  const rows = [...model].filter(([k]) => (from === undefined || k >= hex(from)) && (to === undefined || k < hex(to)))
  rows.sort(([a], [b]) => (a < b ? -1 : 1))
  if (reverse) rows.reverse()
  return rows.slice(0, limit)
}
