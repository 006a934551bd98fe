import assert from 'node:assert/strict'
import { createRecordBatch } from '../../../connectors/log/batch.ts'
import type { LogCheck } from '../log.ts'
import { append, commitValues, drain, offsets, openTopics, seen, toolEpoch, valuesOf } from './harness.ts'

export const commitChecks: Readonly<Record<string, LogCheck>> = {
  'an atomic unit is visible at its commit, in all partitions, and not before': async (harness) => {
    const log = await openTopics(harness)
    const targets = [log.partition('a', 0), log.partition('a', 2), log.partition('b', 1)]
    const inputs = targets.map(({ topic, partition }) => log.input('g', topic, partition))
    const [writer, reader] = [await log.lane('writer'), await log.lane('reader')]
    reader.assign(new Map(inputs.map((input) => [input, 0])))
    const unit = writer.begin('atomic')
    for (const target of targets) append(unit, target, 'one')
    await unit.flush()
    for (const target of targets) append(unit, target, 'two')
    await unit.flush()
    assert.equal((await drain(reader)).size, 0)
    for (const target of targets) {
      assert.deepEqual(await valuesOf(log, target), [])
      assert.equal((await log.ends(target)).stable, 0)
    }
    const outcome = await unit.commit([])
    assert.equal(outcome.kind, 'committed')
    const got = await drain(reader)
    for (const input of inputs)
      assert.deepEqual(
        got.get(input)?.map((record) => record.value),
        ['one', 'two'],
      )
  },

  'an aborted unit leaves nothing that is read': async (harness) => {
    const log = await openTopics(harness)
    const to = log.partition('a', 0)
    const lane = await log.lane('l')
    await commitValues(lane, to, 'before')
    const unit = lane.begin('atomic')
    append(unit, to, 'never')
    await unit.flush()
    append(unit, log.partition('b', 0), 'never')
    await unit.abort()
    await commitValues(lane, to, 'after')
    assert.deepEqual(await valuesOf(log, to), ['before', 'after'])
    assert.deepEqual(await valuesOf(log, log.partition('b', 0)), [])
    lane.assign(new Map([[log.input('g', 'a', 0), 0]]))
    assert.deepEqual(
      (await drain(lane)).get(log.input('g', 'a', 0))?.map((record) => record.value),
      ['before', 'after'],
    )
  },

  'an idempotent unit is visible flush by flush': async (harness) => {
    const log = await openTopics(harness)
    const to = log.partition('a', 1)
    const lane = await log.lane('l')
    const unit = lane.begin('idempotent')
    append(unit, to, 'one')
    await unit.flush()
    assert.deepEqual(await valuesOf(log, to), ['one'])
    append(unit, to, 'two')
    append(unit, to, 'three')
    await unit.flush()
    assert.deepEqual(await valuesOf(log, to), ['one', 'two', 'three'])
    append(unit, to, 'four')
    const outcome = await unit.commit([])
    assert.ok(outcome.kind === 'committed')
    assert.deepEqual(await valuesOf(log, to), ['one', 'two', 'three', 'four'])
    assert.equal(outcome.ends.get(to), (await log.ends(to)).stable)
  },

  'what an idempotent unit flushed stays when the unit is aborted': async (harness) => {
    const log = await openTopics(harness)
    const to = log.partition('a', 1)
    const unit = (await log.lane('l')).begin('idempotent')
    append(unit, to, 'flushed')
    await unit.flush()
    await unit.abort()
    assert.deepEqual(await valuesOf(log, to), ['flushed'])
  },

  'records of a partition keep the order of appending, with ascending offsets': async (harness) => {
    const log = await openTopics(harness)
    const [p, q] = [log.partition('a', 0), log.partition('a', 1)]
    const lane = await log.lane('l')
    const unit = lane.begin('atomic')
    append(unit, p, '0', '1')
    append(unit, q, 'x')
    append(unit, p, '2')
    const first = await unit.commit([])
    assert.ok(first.kind === 'committed')
    const end = await commitValues(lane, p, '3', '4')
    lane.assign(new Map([[log.input('g', 'a', 0), 0]]))
    const records = (await drain(lane)).get(log.input('g', 'a', 0)) ?? []
    assert.deepEqual(
      records.map((record) => record.value),
      ['0', '1', '2', '3', '4'],
    )
    for (let i = 1; i < records.length; i++) assert.ok(records[i]!.offset > records[i - 1]!.offset)
    assert.equal(first.ends.get(p), records[2]!.offset + 1)
    assert.equal(end, records[4]!.offset + 1)
    assert.equal(first.ends.size, 2)
  },

  'keys, values and headers may be null, empty or any bytes': async (harness) => {
    const log = await openTopics(harness)
    const to = log.partition('a', 0)
    const all = Buffer.from(Array.from({ length: 256 }, (_, i) => i))
    const batch = createRecordBatch(1)
    batch.add(null, null, 0)
    batch.add(new Uint8Array(0), new Uint8Array(0), 1_700_000_000_123)
    batch.add(all, all.toReversed(), 5, [
      ['traceparent', Buffer.from('00-1')],
      ['ünï', new Uint8Array(0)],
      ['ünï', all],
    ])
    const unit = (await log.lane('l')).begin('atomic')
    unit.append(to, batch)
    assert.equal((await unit.commit([])).kind, 'committed')
    const got = (await log.read(to, 0, 1 << 20, 'stable'))!
    assert.equal(got.count, 3)
    // From the last to the first: records can be asked for in any order.
    const headers = got.headers(2).map(([name, value]) => [name, Buffer.from(value)])
    assert.deepEqual(headers, [
      ['traceparent', Buffer.from('00-1')],
      ['ünï', Buffer.alloc(0)],
      ['ünï', all],
    ])
    assert.deepEqual(Buffer.from(got.value(2)!), Buffer.from(all.toReversed()))
    assert.deepEqual(Buffer.from(got.key(2)!), all)
    assert.equal(got.timestamp(1), 1_700_000_000_123)
    assert.equal(got.key(1)?.length, 0)
    assert.equal(got.value(1)?.length, 0)
    assert.deepEqual([got.key(0), got.value(0), got.headers(0), got.timestamp(0)], [null, null, [], 0])
  },

  'a builder may be used again as soon as append returns': async (harness) => {
    const log = await openTopics(harness)
    const to = log.partition('a', 0)
    const unit = (await log.lane('l')).begin('atomic')
    const batch = createRecordBatch(64)
    for (const value of ['one', 'two', 'six']) {
      batch.clear()
      batch.add(null, Buffer.from(value), 1)
      unit.append(to, batch)
    }
    batch.clear()
    batch.add(null, Buffer.from('bad'), 1)
    await unit.commit([])
    assert.deepEqual(await valuesOf(log, to), ['one', 'two', 'six'])
  },

  'big records pass, larger ones than the topic allows are refused by name': async (harness) => {
    const log = await openTopics(harness)
    const lane = await log.lane('l')
    const big = 'x'.repeat(900_000)
    await commitValues(lane, log.partition('a', 0), 'small', big, 'small')
    assert.deepEqual(
      (await valuesOf(log, log.partition('a', 0), 1000)).map((value) => value?.length),
      [5, 900_000, 5],
    )
    const unit = lane.begin('atomic')
    const to = log.partition('b', 0)
    assert.throws(() => append(unit, to, 'fits', { key: 'the-key', value: 'y'.repeat(1000) }), {
      code: 'record-too-large',
      message: /b.*the-key.*1007/s,
    })
    append(unit, to, { key: 'the-key', value: 'y'.repeat(993) })
    assert.equal((await unit.commit([])).kind, 'committed')
    assert.deepEqual(
      (await valuesOf(log, to)).map((value) => value?.length),
      [993],
    )
  },

  'positions of several groups, with metadata, are committed together with the records': async (harness) => {
    const log = await openTopics(harness)
    const lane = await log.lane('l')
    const [p, q] = [log.partition('a', 0), log.partition('b', 1)]
    assert.equal((await log.positions('g', [p, q])).size, 0)
    const unit = lane.begin('atomic')
    append(unit, p, 'one', 'two')
    const groups = [
      offsets('g', toolEpoch, [log.input('g', 'a', 0), 1, '{"token":"ü"}'], [log.input('g', 'b', 1), 7]),
      offsets('h', toolEpoch, [log.input('h', 'a', 0), 2, '']),
    ]
    assert.equal((await log.positions('g', [p])).size, 0)
    assert.equal((await unit.commit(groups)).kind, 'committed')
    const g = await log.positions('g', [p, q, log.partition('a', 1)])
    assert.deepEqual(
      [...g],
      [
        [p, { next: 1, meta: '{"token":"ü"}' }],
        [q, { next: 7 }],
      ],
    )
    assert.equal((await log.positions('h', [p])).get(p)?.next, 2)
    const later = lane.begin('idempotent')
    assert.equal((await later.commit([offsets('g', toolEpoch, [log.input('g', 'a', 0), 2])])).kind, 'committed')
    assert.deepEqual((await log.positions('g', [p])).get(p), { next: 2 })
    assert.equal((await log.positions('g', [q])).get(q)?.next, 7)
  },

  'positions of an aborted unit are not committed': async (harness) => {
    const log = await openTopics(harness)
    const lane = await log.lane('l')
    const unit = lane.begin('atomic')
    append(unit, log.partition('a', 0), 'one')
    await unit.abort()
    assert.equal((await log.positions('g', [log.partition('a', 0)])).size, 0)
    assert.notEqual((await unit.commit([offsets('g', toolEpoch, [log.input('g', 'a', 0), 1])])).kind, 'committed')
    assert.equal((await log.positions('g', [log.partition('a', 0)])).size, 0)
    assert.deepEqual(await valuesOf(log, log.partition('a', 0)), [])
  },

  'a lane opened again fences its earlier holder': async (harness) => {
    const log = await openTopics(harness)
    const to = log.partition('a', 0)
    const older = await log.lane('l')
    const [atomic, other] = [older.begin('atomic'), await log.lane('other')]
    append(atomic, to, 'zombie')
    const newer = await log.lane('l')
    assert.deepEqual(await atomic.commit([]), {
      kind: 'fenced',
      by: 'producer',
    })
    const idempotent = older.begin('idempotent')
    append(idempotent, to, 'zombie')
    await assert.rejects(async () => await idempotent.flush())
    assert.deepEqual(await idempotent.commit([]), {
      kind: 'fenced',
      by: 'producer',
    })
    await commitValues(newer, to, 'new')
    await commitValues(other, to, 'other')
    assert.deepEqual(await valuesOf(log, to), ['new', 'other'])
  },

  'lanes that commit at the same time lose nothing of each other': async (harness) => {
    const log = await openTopics(harness)
    const to = log.partition('a', 0)
    const lanes = await Promise.all(['1', '2', '3', '4'].map((id) => log.lane(id)))
    const work = lanes.map(async (lane, n) => {
      for (let i = 0; i < 5; i++) await commitValues(lane, to, `${n}-${i}`, `${n}-${i}!`)
    })
    await Promise.all(work)
    const values = await valuesOf(log, to)
    assert.equal(values.length, 40)
    for (let n = 0; n < 4; n++) {
      const own = values.filter((value) => value?.startsWith(`${n}-`))
      assert.deepEqual(
        own,
        [0, 1, 2, 3, 4].flatMap((i) => [`${n}-${i}`, `${n}-${i}!`]),
      )
    }
    for (let i = 0; i < values.length; i += 2) assert.equal(values[i + 1], `${values[i]}!`)
  },

  'topics are made once and verified': async (harness) => {
    const log = await openTopics(harness)
    const spec = { name: 'c', partitions: 2, cleanup: 'compact', maxRecordBytes: 100 } as const
    const [made] = await log.ensure([spec])
    assert.deepEqual([made?.name, made?.partitions], ['c', 2])
    const again = await log.ensure([spec, { ...spec, name: 'd' }])
    assert.equal(again[0]?.id, made?.id)
    assert.notEqual(again[1]?.id, made?.id)
    await assert.rejects(async () => log.ensure([{ ...spec, partitions: 3 }]), {
      code: 'topic-mismatch',
      message: /\bc\b.*3/s,
    })
    await assert.rejects(async () => log.ensure([{ ...spec, cleanup: 'delete' }]), {
      code: 'topic-mismatch',
    })
    const unit = (await log.lane('l')).begin('atomic')
    assert.throws(() => append(unit, log.partition('nowhere', 0), 'x'), {
      code: 'topic-unknown',
      message: /nowhere/,
    })
    assert.throws(() => append(unit, log.partition('c', 2), 'x'), {
      code: 'topic-unknown',
    })
    await assert.rejects(async () => log.read(log.partition('nowhere', 0), 0, 1, 'stable'), { code: 'topic-unknown' })
  },

  'a closed log refuses by code': async (harness) => {
    const log = await openTopics(harness)
    const lane = await log.lane('l')
    const unit = lane.begin('atomic')
    append(unit, log.partition('a', 0), 'x')
    await log.close()
    assert.equal((await unit.commit([])).kind, 'fatal')
    assert.throws(() => lane.begin('atomic'), { code: 'closed' })
    await assert.rejects(async () => log.lane('m'), { code: 'closed' })
    await assert.rejects(async () => log.read(log.partition('a', 0), 0, 1, 'stable'), {
      code: 'closed',
    })
    await log.close()
  },

  'batches name their input, and inputs and partitions are one object each': async (harness) => {
    const log = await openTopics(harness)
    assert.equal(log.partition('a', 1), log.partition('a', 1))
    assert.equal(log.input('g', 'a', 1), log.input('g', 'a', 1))
    assert.notEqual(log.input('g', 'a', 1), log.input('h', 'a', 1))
    const lane = await log.lane('l')
    await commitValues(lane, log.partition('a', 1), 'x')
    lane.assign(
      new Map([
        [log.input('g', 'a', 1), 0],
        [log.input('h', 'a', 1), 0],
      ]),
    )
    const batches = await lane.poll(1 << 20, 0)
    assert.deepEqual(
      new Set(batches.map((batch) => batch.from)),
      new Set([log.input('g', 'a', 1), log.input('h', 'a', 1)]),
    )
    for (const batch of batches)
      assert.deepEqual(
        seen(batch).map((record) => record.value),
        ['x'],
      )
  },
}
