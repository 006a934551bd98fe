import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSystemClock } from '../../../connectors/clock/system.ts'
import { createVirtualClock } from '../../../connectors/clock/virtual.ts'
import { createMemoryLog } from '../../../connectors/log/memory.ts'
import type { Batch, Log } from '../../../connectors/log/types.ts'
import {
  append,
  commitValues,
  type LogHarness,
  offsets,
  openTopics,
  toolEpoch,
  valuesOf,
} from '../../suites/log/harness.ts'
import { testLog } from '../../suites/log.ts'

export function memoryHarness(): LogHarness {
  let log: Log | undefined
  return {
    async open() {
      return (log = createMemoryLog({ clock: createSystemClock() }))
    },
    async close() {
      await log?.close()
    },
  }
}

testLog('memory', memoryHarness, false)

async function openMemory(clock = createVirtualClock(1000)) {
  const log = createMemoryLog({ clock })
  await openTopics({ open: async () => log, close: async () => {} })
  return { log, clock, lane: await log.lane('l') }
}

test('memory answers synchronously: flush, commit, abort, ends, and polls that need not wait', async () => {
  const { log, lane } = await openMemory()
  lane.assign(new Map([[log.input('g', 'a', 0), 0]]))
  assert.ok(Array.isArray(lane.poll(100, 0)))
  const unit = lane.begin('idempotent')
  append(unit, log.partition('a', 0), 'x')
  assert.equal(unit.flush(), undefined)
  assert.equal((lane.poll(100, 1000) as readonly Batch[]).length, 1)
  append(unit, log.partition('a', 0), 'y')
  const outcome = unit.commit([])
  assert.ok('kind' in outcome && outcome.kind === 'committed')
  assert.deepEqual(lane.ends(log.partition('a', 0)), {
    stable: 2,
    high: 2,
    atMs: 1000,
  })
  assert.equal(lane.begin('atomic').abort(), undefined)
})

test('memory waits by the clock it is given', async () => {
  const { log, clock, lane } = await openMemory()
  lane.assign(new Map([[log.input('g', 'a', 0), 0]]))
  let answer: readonly Batch[] | undefined
  const polled = Promise.resolve(lane.poll(100, 500)).then((batches) => (answer = batches))
  clock.advanceTo(499)
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(answer, undefined)
  clock.advanceTo(500)
  assert.deepEqual(await polled, [])
})

test('failNextCommit fails one commit, whole, as it was told', async () => {
  const { log, lane } = await openMemory()
  const attempt = (value: string) => {
    const unit = lane.begin('atomic')
    append(unit, log.partition('a', 0), value)
    return unit.commit([offsets('g', toolEpoch, [log.input('g', 'a', 0), 1])])
  }
  log.failNextCommit('aborted')
  assert.equal((await attempt('1')).kind, 'aborted')
  log.failNextCommit('fatal')
  assert.equal((await attempt('2')).kind, 'fatal')
  log.failNextCommit('fenced')
  assert.deepEqual(await attempt('3'), { kind: 'fenced', by: 'epoch' })
  log.failNextCommit('fenced', 'producer')
  assert.deepEqual(await attempt('4'), { kind: 'fenced', by: 'producer' })
  assert.equal((await log.positions('g', [log.partition('a', 0)])).size, 0)
  assert.equal((await attempt('5')).kind, 'committed')
  assert.deepEqual(await valuesOf(log, log.partition('a', 0)), ['5'])
})

test('a member that is evicted learns what it lost and joins again', async () => {
  const { log, lane } = await openMemory()
  const member = await log.join('g', 'one', (members) => new Map(members.map((name) => [name, ['0_0', '0_1']])))
  const before = await member.next([])
  const waiting = member.next([])
  log.evict('g', 'one')
  const gone = await waiting
  assert.deepEqual([gone.owned, gone.lost], [[], ['0_0', '0_1']])
  const unit = lane.begin('atomic')
  append(unit, log.partition('a', 0), 'late')
  assert.deepEqual(await unit.commit([offsets('g', before.epoch, [log.input('g', 'a', 0), 1])]), {
    kind: 'fenced',
    by: 'epoch',
  })
  const back = await member.next(gone.lost)
  assert.deepEqual(back.owned, ['0_0', '0_1'])
  assert.notEqual(back.epoch.memberId, before.epoch.memberId)
})

test('records gives all of a partition, views that stay', async () => {
  const { log, lane } = await openMemory()
  await commitValues(lane, log.partition('a', 0), 'one', 'two')
  await commitValues(lane, log.partition('a', 0), {
    key: null,
    value: null,
    at: 9,
    headers: [['h', Buffer.from('!')]],
  })
  const all = [...log.records('a', 0)]
  await commitValues(lane, log.partition('a', 0), 'four')
  assert.deepEqual(
    all.map(({ offset, value }) => [offset, value?.toString()]),
    [
      [0, 'one'],
      [1, 'two'],
      [2, undefined],
    ],
  )
  assert.deepEqual([all[2]!.timestamp, all[2]!.key, all[2]!.headers[0]?.[0]], [9, null, 'h'])
  assert.throws(() => [...log.records('nowhere', 0)], {
    code: 'topic-unknown',
  })
})
