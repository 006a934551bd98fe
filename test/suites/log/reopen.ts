import assert from 'node:assert/strict'
import type { Log } from '../../../connectors/log/types.ts'
import type { LogCheck } from '../log.ts'
import { append, commitValues, drain, type LogHarness, offsets, openTopics, toolEpoch, valuesOf } from './harness.ts'

async function reopened(harness: LogHarness): Promise<Log> {
  if (harness.reopen === undefined) throw new Error('this log does not outlive its process')
  return harness.reopen()
}

export const reopenChecks: Readonly<Record<string, LogCheck>> = {
  'after a crash all that was committed is there and nothing else': async (harness) => {
    const log = await openTopics(harness)
    const lane = await log.lane('l')
    const [p, q] = [log.partition('a', 0), log.partition('b', 1)]
    await commitValues(lane, p, { key: null, value: null, at: 3, headers: [['h', Buffer.from('x')]] }, 'two')
    const unit = lane.begin('atomic')
    append(unit, p, 'three')
    append(unit, q, 'other')
    const positions = [
      offsets('g', toolEpoch, [log.input('g', 'a', 0), 2, 'meta']),
      offsets('h', toolEpoch, [log.input('h', 'b', 1), 1]),
    ]
    assert.equal((await unit.commit(positions)).kind, 'committed')
    const stage = lane.begin('idempotent')
    append(stage, q, 'flushed')
    await stage.flush()
    append(stage, q, 'not flushed')
    const open = (await log.lane('m')).begin('atomic')
    append(open, p, 'never committed')
    await open.flush()
    const ids = await log.ensure([{ name: 'a', partitions: 3, cleanup: 'compact', maxRecordBytes: 1 << 20 }])

    const again = await reopened(harness)
    assert.deepEqual(await valuesOf(again, again.partition('a', 0)), [null, 'two', 'three'])
    assert.deepEqual(await valuesOf(again, again.partition('b', 1)), ['other', 'flushed'])
    const first = (await again.read(again.partition('a', 0), 0, 1, 'stable'))!
    assert.deepEqual([first.key(0), first.timestamp(0), first.headers(0)[0]?.[0]], [null, 3, 'h'])
    const g = await again.positions('g', [again.partition('a', 0), again.partition('b', 1)])
    assert.deepEqual([...g.values()], [{ next: 2, meta: 'meta' }])
    assert.equal((await again.positions('h', [again.partition('b', 1)])).get(again.partition('b', 1))?.next, 1)
    const sameIds = await again.ensure([{ name: 'a', partitions: 3, cleanup: 'compact', maxRecordBytes: 1 << 20 }])
    assert.equal(sameIds[0]?.id, ids[0]?.id)
    await assert.rejects(
      async () => again.ensure([{ name: 'a', partitions: 4, cleanup: 'compact', maxRecordBytes: 1 }]),
      {
        code: 'topic-mismatch',
      },
    )
  },

  'after a crash the log goes on where it was, crash after crash': async (harness) => {
    let log = await openTopics(harness)
    const expected: string[] = []
    for (let life = 0; life < 4; life++) {
      const lane = await log.lane('l')
      for (let i = 0; i < 3; i++) {
        const value = `${life}-${i}`
        expected.push(value)
        assert.equal(await commitValues(lane, log.partition('a', 1), value), expected.length)
      }
      log = await reopened(harness)
      assert.deepEqual(await valuesOf(log, log.partition('a', 1)), expected)
    }
    const lane = await log.lane('reader')
    const input = log.input('g', 'a', 1)
    lane.assign(new Map([[input, 5]]))
    assert.deepEqual(
      (await drain(lane)).get(input)?.map((record) => record.value),
      expected.slice(5),
    )
  },

  'an epoch of before the crash is over': async (harness) => {
    const log = await openTopics(harness)
    const before = await (await log.join('g', 'one', () => new Map([['one', ['0_0']]]))).next([])
    const again = await reopened(harness)
    const after = await (await again.join('g', 'one', () => new Map([['one', ['0_0']]]))).next([])
    assert.ok(after.epoch.generation > before.epoch.generation)
    assert.notEqual(after.epoch.memberId, before.epoch.memberId)
    const unit = (await again.lane('l')).begin('atomic')
    const outcome = await unit.commit([offsets('g', before.epoch, [again.input('g', 'a', 0), 1])])
    assert.deepEqual(outcome, { kind: 'fenced', by: 'epoch' })
  },
}
