import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { maxKeyBytes } from '../../connectors/store/errors.ts'
import type { Checkpoint, StoreProvider, TaskStore, Write } from '../../connectors/store/types.ts'

/**
 * What every Store adapter must do. `open` gives a provider over an empty place; `reopen` another over the same place,
 * as after a restart (or the same one, where only it knows the place).
 */
export interface StoreSuite {
  readonly name: string
  open(): { provider: StoreProvider; reopen(): StoreProvider; dispose(): void }
}

export function storeSuite(suite: StoreSuite): void {
  const run = (what: string, body: (store: TaskStore) => void | Promise<void>): void => {
    test(`${suite.name}: ${what}`, async () => {
      const place = suite.open()
      const store = place.provider.open('app', '0_1', ['a', 'b'])
      try {
        await body(store)
      } finally {
        await store.close()
        place.dispose()
      }
    })
  }

  run('what is applied is read back, overwritten and deleted', (store) => {
    put(store, 'a', { k1: 'v1', k2: 'v2' })
    put(store, 'b', { k1: 'other' })
    assert.equal(get(store, 'a', 'k1'), 'v1')
    assert.equal(get(store, 'b', 'k1'), 'other')
    assert.equal(get(store, 'a', 'k3'), undefined)
    store.apply([['a', bytes('k1'), bytes('new')] as Write, ['a', bytes('k2'), null], ['a', bytes('none'), null]], none)
    assert.equal(get(store, 'a', 'k1'), 'new')
    assert.equal(get(store, 'a', 'k2'), undefined)
    assert.equal(store.count('a'), 1)
    assert.equal(store.count('b'), 1)
  })

  run('the last write of a key in a batch counts', (store) => {
    store.apply([['a', bytes('k'), bytes('1')] as Write, ['a', bytes('k'), null], ['a', bytes('k'), bytes('3')]], none)
    assert.equal(get(store, 'a', 'k'), '3')
    store.apply([['a', bytes('k'), bytes('4')] as Write, ['a', bytes('k'), null]], none)
    assert.equal(get(store, 'a', 'k'), undefined)
    assert.equal(store.count('a'), 0)
  })

  run('neither the writer nor a reader shares memory with the store', (store) => {
    const key = bytes('key')
    const value = bytes('value')
    store.apply([['a', key, value]], none)
    key.fill(0)
    value.fill(0)
    const first = store.get('a', bytes('key'))!
    assert.equal(store.get('a', bytes('nothing')), undefined)
    store.apply([['a', bytes('key2'), bytes('longer value')]], none)
    assert.equal(get(store, 'a', 'key2'), 'longer value')
    assert.equal(Buffer.from(first).toString(), 'value')
  })

  run('empty and large values, binary keys', (store) => {
    const large = Buffer.alloc(700_000, 7)
    const key = Buffer.from([0, 255, 0, 128])
    store.apply([['a', key, large] as Write, ['a', Buffer.from([0]), new Uint8Array(0)]], none)
    assert.equal(Buffer.compare(store.get('a', key)!, large), 0)
    assert.equal(store.get('a', Buffer.from([0]))!.length, 0)
    assert.deepEqual(
      [...store.range('a', undefined, undefined)].map(([k]) => [...k]),
      [[0], [0, 255, 0, 128]],
    )
    assert.deepEqual(
      [...store.range('a', undefined, undefined, true)].map(([k]) => [...k]),
      [[0, 255, 0, 128], [0]],
    )
    assert.equal([...store.range('a', new Uint8Array(0), undefined, true)].length, 2)
    assert.equal([...store.range('a', new Uint8Array(0), undefined)].length, 2)
  })

  run('ranges are in byte order, from inclusive, to exclusive, both ways', (store) => {
    put(store, 'a', {
      b: '1',
      a: '2',
      'a\u0000': '3',
      aa: '4',
      c: '5',
      é: '6',
      '\uffff': '7',
      '\u{10000}': '8',
    })
    const all = ['a', 'a\u0000', 'aa', 'b', 'c', 'é', '\uffff', '\u{10000}']
    assert.deepEqual(keys(store, 'a'), all)
    assert.deepEqual(keys(store, 'a', undefined, undefined, true), all.toReversed())
    assert.deepEqual(keys(store, 'a', 'aa', 'c'), ['aa', 'b'])
    assert.deepEqual(keys(store, 'a', 'aa', 'c', true), ['b', 'aa'])
    assert.deepEqual(keys(store, 'a', 'ab', 'bb'), ['b'])
    assert.deepEqual(keys(store, 'a', 'ab', 'bb', true), ['b'])
    assert.deepEqual(keys(store, 'a', 'c'), ['c', 'é', '\uffff', '\u{10000}'])
    assert.deepEqual(keys(store, 'a', undefined, 'a'), [])
    assert.deepEqual(keys(store, 'a', 'c', 'a'), [])
    assert.deepEqual(keys(store, 'a', 'b', 'b', true), [])
    assert.deepEqual(keys(store, 'b'), [])
    assert.deepEqual(keys(store, 'b', undefined, undefined, true), [])
  })

  run('a range that is left early costs nothing later', (store) => {
    fill(store, 'a', 2_000)
    for (let i = 0; i < 200; i++) {
      for (const [key] of store.range('a', bytes(number(i)), undefined)) {
        assert.equal(text(key), number(i))
        break
      }
    }
    store.apply([['a', bytes('~'), bytes('last')]], none)
    assert.equal(store.count('a'), 2_001)
  })

  run('a range goes on over what is there when the store is written meanwhile', (store) => {
    fill(store, 'a', 1_000)
    const seen: string[] = []
    for (const [key] of store.range('a', undefined, undefined)) {
      seen.push(text(key))
      if (seen.length === 3) {
        store.apply(
          [
            ['a', bytes(number(2)), null] as Write,
            ['a', bytes(number(3)), null],
            ['a', bytes(number(0)), bytes('changed')],
            ['a', bytes(`${number(4)}+`), bytes('new')],
            ['a', bytes('!'), bytes('behind')],
          ],
          none,
        )
      }
    }
    const expected = Array.from({ length: 1_000 }, (_, i) => number(i)).filter((k) => k !== number(3))
    expected.splice(4, 0, `${number(4)}+`)
    assert.deepEqual(seen, expected)
    const backward: string[] = []
    for (const [key] of store.range('a', undefined, undefined, true)) {
      backward.push(text(key))
      if (backward.length === 2) {
        store.apply(
          [
            ['a', bytes(number(998)), null] as Write,
            ['a', bytes(number(997)), null],
            ['a', bytes(`${number(996)}+`), bytes('new')],
            ['a', bytes('~'), bytes('behind')],
          ],
          none,
        )
      }
    }
    assert.deepEqual(backward.slice(0, 4), [number(999), number(998), `${number(996)}+`, number(996)])
    assert.equal(backward.at(-1), '!')
  })

  run('apply refuses the whole batch when a write is impossible', (store) => {
    put(store, 'a', { k: 'v' })
    const before = store.checkpoint()
    const next: Checkpoint = new Map([['log-0', { topicId: 't', next: 9 }]])
    const refused = (write: Write, code: string, named: RegExp): void => {
      assert.throws(
        () => store.apply([['a', bytes('k'), bytes('lost')], write], next),
        (error: Error & { code?: string }) => error.code === code && named.test(error.message),
      )
    }
    refused(['b', Buffer.alloc(maxKeyBytes + 1, 65), bytes('v')], 'key-too-long', /store b/)
    refused(['b', new Uint8Array(0), bytes('v')], 'key-empty', /store b/)
    refused(['c', bytes('k'), bytes('v')], 'unknown-store', /without c/)
    assert.equal(get(store, 'a', 'k'), 'v')
    assert.deepEqual(store.checkpoint(), before)
    const longest = Buffer.alloc(maxKeyBytes, 65)
    store.apply([['b', longest, bytes('fits')]], none)
    assert.equal(text(store.get('b', longest)!), 'fits')
    assert.throws(() => store.get('c', bytes('k')), { code: 'unknown-store' })
    assert.throws(() => store.range('c', undefined, undefined), {
      code: 'unknown-store',
    })
  })

  test(`${suite.name}: data and checkpoint are there after a restart`, async () => {
    const place = suite.open()
    const first = place.provider.open('app', '0_1', ['a', 'b'])
    const checkpoint: Checkpoint = new Map([
      ['app-a-changelog-1', { topicId: 'id-1', next: 42 }],
      ['app-b-changelog-1', { topicId: 'id-2', next: 7 }],
    ])
    assert.equal(first.checkpoint().size, 0)
    first.apply([['a', bytes('k'), bytes('v')]], checkpoint)
    await first.sync()
    assert.throws(() => place.provider.open('app', '0_1', ['a']), {
      code: 'already-open',
    })
    await first.close()
    assert.throws(() => first.get('a', bytes('k')), { code: 'closed' })
    assert.throws(() => first.apply([], none), { code: 'closed' })
    const again = place.reopen()
    const second = again.open('app', '0_1', ['a', 'b'])
    assert.equal(get(second, 'a', 'k'), 'v')
    assert.deepEqual(second.checkpoint(), checkpoint)
    const other = again.open('app', '0_2', ['a', 'b'])
    assert.equal(get(other, 'a', 'k'), undefined)
    assert.equal(other.checkpoint().size, 0)
    await second.close()
    await other.close()
    place.dispose()
  })

  test(`${suite.name}: wipe forgets everything, also a store that is no longer opened`, async () => {
    const place = suite.open()
    const first = place.provider.open('app', '0_1', ['a', 'b'])
    first.apply([['a', bytes('k'), bytes('v')] as Write, ['b', bytes('k'), bytes('v')]], checkpointAt(3))
    await first.close()
    const second = place.reopen().open('app', '0_1', ['a'])
    second.wipe()
    assert.equal(second.count('a'), 0)
    assert.equal(second.checkpoint().size, 0)
    second.apply([['a', bytes('k2'), bytes('v')]], none)
    await second.close()
    const third = place.reopen().open('app', '0_1', ['a', 'b'])
    assert.deepEqual(keys(third, 'a'), ['k2'])
    assert.deepEqual(keys(third, 'b'), [])
    await third.close()
    place.dispose()
  })

  test(`${suite.name}: random operations equal a sorted model`, async () => {
    const place = suite.open()
    const provider = place.provider
    let task = 0
    const seed = Number(process.env.WEIR_TEST_SEED ?? Date.now() % 1_000_000)
    await fc.assert(
      fc.asyncProperty(
        fc.array(batch, { maxLength: 20 }),
        fc.array(query, { maxLength: 10 }),
        async (batches, queries) => {
          const store = provider.open('random', `0_${task++}`, ['a'])
          const model = new Map<string, string>()
          let applied = 0
          for (const writes of batches) {
            store.apply(
              writes.map(
                ([key, value]) => ['a', Buffer.from(key, 'hex'), value === null ? null : bytes(value)] as Write,
              ),
              checkpointAt(++applied),
            )
            for (const [key, value] of writes) value === null ? model.delete(key) : model.set(key, value)
          }
          // Hexadecimal digits order as the bytes do.
          const sorted = [...model].sort(([x], [y]) => (x < y ? -1 : 1))
          for (const { from, to, reverse } of queries) {
            const expected = sorted.filter(([k]) => (from === null || k >= from) && (to === null || k < to))
            if (reverse) expected.reverse()
            const found = [...store.range('a', hex(from), hex(to), reverse)].map(([k, v]) => [
              Buffer.from(k).toString('hex'),
              text(v),
            ])
            assert.deepEqual(found, expected)
          }
          for (const [key, value] of model) assert.equal(text(store.get('a', Buffer.from(key, 'hex'))!), value)
          assert.equal(store.count('a'), model.size)
          assert.deepEqual(store.checkpoint(), applied === 0 ? none : checkpointAt(applied))
          await store.close()
        },
      ),
      { seed, numRuns: suite.name === 'memory' ? 200 : 25 },
    )
    place.dispose()
  })
}

const none: Checkpoint = new Map()
const checkpointAt = (next: number): Checkpoint => new Map([['changelog', { topicId: 'id', next }]])
const hexKey = fc.uint8Array({ minLength: 1, maxLength: 3 }).map((b) => Buffer.from(b).toString('hex'))
const batch = fc.array(fc.tuple(hexKey, fc.option(fc.string({ maxLength: 5 }))), { maxLength: 120 })
const query = fc.record({
  from: fc.option(hexKey),
  to: fc.option(hexKey),
  reverse: fc.boolean(),
})

const hex = (value: string | null): Buffer | undefined => (value === null ? undefined : Buffer.from(value, 'hex'))
const bytes = (value: string): Buffer => Buffer.from(value)
const text = (value: Uint8Array): string => Buffer.from(value).toString()
const number = (i: number): string => String(i).padStart(5, '0')

function get(store: TaskStore, name: string, key: string): string | undefined {
  const value = store.get(name, bytes(key))
  return value && text(value)
}

function put(store: TaskStore, name: string, entries: { [key: string]: string }): void {
  store.apply(
    Object.entries(entries).map(([k, v]) => [name, bytes(k), bytes(v)] as Write),
    none,
  )
}

function fill(store: TaskStore, name: string, count: number): void {
  store.apply(
    Array.from({ length: count }, (_, i) => [name, bytes(number(i)), bytes('v')] as Write),
    none,
  )
}

function keys(store: TaskStore, name: string, from?: string, to?: string, reverse?: boolean): string[] {
  return [
    ...store.range(name, from === undefined ? from : bytes(from), to === undefined ? to : bytes(to), reverse),
  ].map(([k]) => text(k))
}
