import assert from 'node:assert/strict'
import type { LogCheck } from '../log.ts'
import { append, commitValues, drain, longMs, manyBytes, openTopics, seen, valuesOf } from './harness.ts'

export const readChecks: Readonly<Record<string, LogCheck>> = {
  'a poll answers at once with what is there, and waits for what is not': async (harness) => {
    const log = await openTopics(harness)
    const lane = await log.lane('l')
    const writer = await log.lane('writer')
    const input = log.input('g', 'a', 0)
    lane.assign(new Map([[input, 0]]))
    assert.deepEqual(await lane.poll(manyBytes, 0), [])
    assert.deepEqual(await lane.poll(manyBytes, 5), [])
    const polled = lane.poll(manyBytes, longMs)
    assert.ok(polled instanceof Promise)
    const started = performance.now()
    await commitValues(writer, log.partition('a', 1), 'elsewhere')
    await commitValues(writer, log.partition('a', 0), 'here')
    const batches = await polled
    assert.ok(performance.now() - started < longMs / 2, 'a commit wakes the poll')
    assert.deepEqual(
      batches.flatMap(seen).map((record) => record.value),
      ['here'],
    )
  },

  'a poll that waits ends when the lane is closed or assigned anew': async (harness) => {
    const log = await openTopics(harness)
    const lane = await log.lane('l')
    lane.assign(new Map([[log.input('g', 'a', 0), 0]]))
    const first = lane.poll(manyBytes, longMs)
    lane.assign(new Map([[log.input('g', 'a', 1), 0]]))
    assert.deepEqual(await first, [])
    const second = lane.poll(manyBytes, longMs)
    await lane.close()
    assert.deepEqual(await second, [])
  },

  'assign replaces inputs and positions': async (harness) => {
    const log = await openTopics(harness)
    const lane = await log.lane('l')
    await commitValues(lane, log.partition('a', 0), '0', '1', '2')
    await commitValues(lane, log.partition('a', 0), '3', '4')
    await commitValues(lane, log.partition('a', 1), 'x')
    const [p, q] = [log.input('g', 'a', 0), log.input('g', 'a', 1)]
    lane.assign(new Map([[p, 1]]))
    assert.deepEqual(
      [...(await drain(lane))].map(([from, all]) => [from, all.map((r) => r.value)]),
      [[p, ['1', '2', '3', '4']]],
    )
    lane.assign(
      new Map([
        [p, 4],
        [q, 0],
      ]),
    )
    const got = await drain(lane)
    assert.deepEqual(
      got.get(p)?.map((r) => r.value),
      ['4'],
    )
    assert.deepEqual(
      got.get(q)?.map((r) => r.value),
      ['x'],
    )
    lane.assign(new Map())
    assert.equal((await drain(lane)).size, 0)
  },

  'a paused input is not read and goes on where it was': async (harness) => {
    const log = await openTopics(harness)
    const lane = await log.lane('l')
    const [p, q] = [log.input('g', 'a', 0), log.input('g', 'a', 1)]
    for (const n of [0, 1]) await commitValues(lane, log.partition('a', n), 'one')
    lane.assign(
      new Map([
        [p, 0],
        [q, 0],
      ]),
    )
    assert.equal((await drain(lane)).size, 2)
    lane.pause(p, true)
    for (const n of [0, 1]) await commitValues(lane, log.partition('a', n), 'two')
    assert.deepEqual([...(await drain(lane)).keys()], [q])
    assert.deepEqual(await lane.poll(manyBytes, 1), [])
    const woken = lane.poll(manyBytes, longMs)
    lane.pause(p, false)
    assert.deepEqual(
      (await woken).flatMap(seen).map((r) => r.value),
      ['two'],
    )
  },

  'a poll keeps to its bytes but for one record, and loses nothing': async (harness) => {
    const log = await openTopics(harness)
    const lane = await log.lane('l')
    const sizes = [100, 100, 5000, 100, 100, 100, 100, 9000, 100]
    await commitValues(lane, log.partition('a', 0), ...sizes.slice(0, 5).map((n) => 'x'.repeat(n)))
    await commitValues(lane, log.partition('a', 0), ...sizes.slice(5).map((n) => 'x'.repeat(n)))
    lane.assign(new Map([[log.input('g', 'a', 0), 0]]))
    const got: number[] = []
    for (;;) {
      const values = (await lane.poll(400, 0)).flatMap(seen).map((record) => record.value!.length)
      if (values.length === 0) break
      const total = values.reduce((sum, n) => sum + n, 0)
      assert.ok(total <= 400 || values.length === 1, `${values}`)
      got.push(...values)
    }
    assert.deepEqual(got, sizes)
  },

  'a full input does not starve the others': async (harness) => {
    const log = await openTopics(harness)
    const lane = await log.lane('l')
    const inputs = [0, 1, 2].map((n) => log.input('g', 'a', n))
    for (const n of [0, 1, 2]) {
      const values = Array.from({ length: 50 }, () => 'x'.repeat(100))
      await commitValues(lane, log.partition('a', n), ...values)
    }
    lane.assign(new Map(inputs.map((input) => [input, 0])))
    const counts = new Map(inputs.map((input) => [input, 0]))
    for (let i = 0; i < 9; i++) {
      for (const batch of await lane.poll(600, 0)) counts.set(batch.from, counts.get(batch.from)! + batch.count)
    }
    for (const count of counts.values()) assert.ok(count >= 5, `${[...counts.values()]}`)
  },

  'the views of a poll stay as they are until the next one': async (harness) => {
    const log = await openTopics(harness)
    const lane = await log.lane('l')
    await commitValues(lane, log.partition('a', 0), 'first', 'second')
    lane.assign(new Map([[log.input('g', 'a', 0), 0]]))
    const batches = await lane.poll(manyBytes, 0)
    const value = batches[0]!.value(0)!
    for (let i = 0; i < 20; i++) await commitValues(lane, log.partition('a', 0), 'other'.repeat(1000))
    await log.read(log.partition('a', 0), 2, manyBytes, 'stable')
    assert.equal(Buffer.from(value).toString(), 'first')
    assert.deepEqual(
      batches.flatMap(seen).map((record) => record.value),
      ['first', 'second'],
    )
  },

  'read gives a partition in pieces, from any offset, without a lane': async (harness) => {
    const log = await openTopics(harness)
    const lane = await log.lane('l')
    const p = log.partition('a', 0)
    assert.equal(await log.read(p, 0, 100, 'stable'), null)
    const values = Array.from({ length: 30 }, (_, i) => `value ${i}`)
    for (let i = 0; i < 30; i += 6) await commitValues(lane, p, ...values.slice(i, i + 6))
    assert.deepEqual(await valuesOf(log, p, 1), values)
    assert.deepEqual(await valuesOf(log, p, 100), values)
    assert.deepEqual(await valuesOf(log, p), values)
    const { stable, high } = await log.ends(p)
    assert.ok(stable <= high)
    assert.equal(await log.read(p, stable, 100, 'stable'), null)
    const all: { offset: number; value: string | null }[] = []
    for (let from = 0; from < stable; ) {
      const batch = (await log.read(p, from, manyBytes, 'high'))!
      all.push(...seen(batch))
      from = batch.nextOffset
    }
    for (const { offset, value } of all) {
      const batch = (await log.read(p, offset, 1, 'stable'))!
      assert.deepEqual(
        seen(batch).map((r) => [r.offset, r.value]),
        [[offset, value]],
      )
    }
  },

  'ends tell what can be read and when that was': async (harness) => {
    const log = await openTopics(harness)
    const lane = await log.lane('l')
    const p = log.partition('a', 2)
    const before = await log.ends(p)
    assert.deepEqual([before.stable, before.high], [0, 0])
    const end = await commitValues(lane, p, 'one', 'two')
    for (const ends of [lane.ends(p), await log.ends(p), lane.ends(log.input('g', 'a', 2))]) {
      assert.equal(ends.stable, end)
      assert.ok(ends.high >= end)
      assert.ok(ends.atMs >= before.atMs)
    }
    const unit = lane.begin('atomic')
    append(unit, p, 'open')
    await unit.flush()
    assert.equal(lane.ends(p).stable, end)
  },

  'a position that the log does not reach is refused': async (harness) => {
    const log = await openTopics(harness)
    const lane = await log.lane('l')
    const end = await commitValues(lane, log.partition('a', 0), 'one')
    await assert.rejects(async () => log.read(log.partition('a', 0), end + 5, 100, 'stable'), {
      code: 'offset-out-of-range',
    })
    lane.assign(new Map([[log.input('g', 'a', 0), end + 5]]))
    await assert.rejects(async () => await lane.poll(100, 0), {
      code: 'offset-out-of-range',
      message: /a\/0/,
    })
  },
}
