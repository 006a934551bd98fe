import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { createVirtualClock } from '../../../connectors/clock/virtual.ts'
import { createLmdbStoreProvider } from '../../../connectors/store/lmdb.ts'
import type { StoreProvider, Write } from '../../../connectors/store/types.ts'
import { xxh64 } from '../../../schemas/hash.ts'
import { storeSuite } from '../../suites/store.ts'
import { writesOf } from './crash-writes.ts'

// Written through at every apply, now and then, and only at the end: the same to whoever uses it.
for (const maxPendingBytes of [0, 300, undefined]) {
  storeSuite({
    name: `lmdb, ${maxPendingBytes ?? 'default'} bytes pending`,
    open() {
      const root = mkdtempSync(join(tmpdir(), 'weir-store-'))
      const open = (): StoreProvider =>
        createLmdbStoreProvider({ root, ...(maxPendingBytes === undefined ? {} : { maxPendingBytes }) })
      return { provider: open(), reopen: open, dispose: () => rmSync(root, { recursive: true, force: true }) }
    },
  })
}

test('with a clock, nothing waits longer than a second to be written', async () => {
  const root = mkdtempSync(join(tmpdir(), 'weir-store-'))
  const clock = createVirtualClock(0)
  const store = createLmdbStoreProvider({ root, clock }).open('app', '0_0', ['a'])
  // lmdb shares an environment within a process: the other provider sees what is written, and that alone.
  const onDisk = createLmdbStoreProvider({ root }).open('app', '0_0', ['a'])
  const seen = (key: string): boolean => onDisk.get('a', Buffer.from(key)) !== undefined
  store.apply([['a', Buffer.from('k1'), Buffer.from('v')]], new Map())
  clock.advanceTo(900)
  store.apply([['a', Buffer.from('k2'), Buffer.from('v')]], new Map())
  assert.deepEqual([seen('k1'), seen('k2')], [false, false])
  clock.advanceTo(1_000)
  // Its reads are of one moment for as long as this turn lasts.
  await setTimeout(1)
  assert.deepEqual([seen('k1'), seen('k2')], [true, true])
  assert.equal(clock.nextTimerMs(), undefined)
  store.apply([['a', Buffer.from('k3'), Buffer.from('v')]], new Map())
  assert.equal(clock.nextTimerMs(), 2_000)
  await store.close()
  assert.equal(clock.nextTimerMs(), undefined)
  await onDisk.close()
  rmSync(root, { recursive: true, force: true })
})

test('an apply that fails half-way leaves nothing behind', async () => {
  const root = mkdtempSync(join(tmpdir(), 'weir-store-'))
  const store = createLmdbStoreProvider({ root }).open('app', '0_0', ['a'])
  store.apply([['a', Buffer.from('k'), Buffer.from('v')]], new Map([['log', { topicId: 'id', next: 1 }]]))
  const notBytes = { length: 3 } as unknown as Uint8Array
  assert.throws(() =>
    store.apply(
      [['a', Buffer.from('k'), Buffer.from('other')] as Write, ['a', Buffer.from('k2'), notBytes]],
      new Map([['log', { topicId: 'id', next: 2 }]]),
    ),
  )
  assert.equal(Buffer.from(store.get('a', Buffer.from('k'))!).toString(), 'v')
  assert.equal(store.count('a'), 1)
  assert.equal(store.checkpoint().get('log')?.next, 1)
  await store.close()
  rmSync(root, { recursive: true, force: true })
})

test('P1: after kill -9 the data are exactly those of the checkpoint', async () => {
  const seed = Number(process.env.WEIR_TEST_SEED ?? Date.now() % 1_000_000)
  console.log(`# seed ${seed}`)
  const root = mkdtempSync(join(tmpdir(), 'weir-store-'))
  const model = { a: new Map<string, string>(), b: new Map<string, string>() }
  let replayed = 0
  for (let round = 0; round < 4; round++) {
    const child = spawn(process.execPath, [join(import.meta.dirname, 'crash-child.ts'), root, String(seed)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    await once(child.stdout, 'data')
    await setTimeout(Number(xxh64(`${seed}:${round}`) % 120n))
    child.kill('SIGKILL')
    await once(child, 'exit')

    const store = createLmdbStoreProvider({ root }).open('app', '0_0', ['a', 'b'])
    const next = store.checkpoint().get('changelog')?.next ?? 0
    assert.ok(next >= replayed, `seed ${seed}: the checkpoint went from ${replayed} back to ${next}`)
    for (; replayed < next; replayed++) {
      for (const [name, key, value] of writesOf(seed, replayed)) {
        const map = model[name as 'a' | 'b']
        if (value === null) map.delete(hexOf(key))
        else map.set(hexOf(key), hexOf(value))
      }
    }
    for (const name of ['a', 'b'] as const) {
      const found = [...store.range(name, undefined, undefined)].map(([k, v]) => [hexOf(k), hexOf(v)])
      assert.deepEqual(found, [...model[name]].sort(), `seed ${seed}, round ${round}, store ${name}`)
      assert.equal(store.count(name), model[name].size)
    }
    await store.close()
  }
  assert.ok(replayed > 0, 'no batch was applied before a kill')
  rmSync(root, { recursive: true, force: true })
})

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')
