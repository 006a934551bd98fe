import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readBatch } from '../../../connectors/log/batch.ts'
import type { Lane, Partition, RecordBatch, Unit } from '../../../connectors/log/types.ts'
import { Outbox } from '../../../topology/streams/outbox.ts'
import { Forwards, type TargetTopic } from '../../../topology/streams/outputs.ts'
import { runAsync } from '../../../topology/streams/steps.ts'

/** A lane that writes down what it is asked for; flushes end when they are told to. */
function recordingLane(orderedFlush: boolean) {
  const calls: string[] = []
  const flushes: (() => void)[] = []
  const unit: Unit = {
    orderedFlush,
    append(to: Partition, records: RecordBatch) {
      const batch = readBatch(Buffer.from(records.bytes()), { ...to, group: '' }, 0, records.count)
      const keys = Array.from({ length: batch.count }, (_, i) => Buffer.from(batch.key(i)!).toString())
      calls.push(`${to.topic}: ${keys.join(' ')}`)
    },
    flush() {
      calls.push('flush')
      return new Promise((resolve) => flushes.push(resolve))
    },
    commit: () => assert.fail('an outbox never commits'),
    abort() {},
  }
  return { calls, flushes, lane: { begin: () => unit } as unknown as Lane }
}

const target = (name: string, index: number): TargetTopic => ({
  name,
  maxRecordBytes: 1_000,
  slots: [{ to: { topic: name, partition: 0 }, index }],
})
const parsed = target('parsed', 0)
const fetched = target('fetched', 1)

function completion(...records: [TargetTopic, string][]): Forwards {
  const forwards = new Forwards()
  for (const [topic, key] of records) forwards.add(topic, 0, Buffer.from(key), null, 0, [])
  return forwards
}

for (const ordered of [false, true]) {
  test(`the last record of a completion follows when the others are durable (orderedFlush ${ordered})`, async () => {
    const { calls, flushes, lane } = recordingLane(ordered)
    const outbox = new Outbox(
      lane,
      (steps) => void runAsync(steps),
      () => {},
    )
    const acked: string[] = []
    const page = (n: number) => completion([parsed, `p${n}`], [fetched, `f${n}`])
    outbox.complete(page(1), 0, () => acked.push('1'))
    // While the first is on its way the others gather.
    outbox.complete(page(2), 0, () => acked.push('2'))
    outbox.complete(page(3), 0, () => acked.push('3'))
    while (!outbox.isIdle) {
      flushes.shift()?.()
      await new Promise(setImmediate)
    }
    const middle = ordered ? [] : ['flush']
    assert.deepEqual(calls, [
      'parsed: p1',
      ...middle,
      'fetched: f1',
      'flush',
      'parsed: p2 p3',
      ...middle,
      'fetched: f2 f3',
      'flush',
    ])
    assert.deepEqual(acked, ['1', '2', '3'])
  })
}

test('a record does not overtake the last one of an earlier completion in its partition', async () => {
  const { calls, flushes, lane } = recordingLane(true)
  const outbox = new Outbox(
    lane,
    (steps) => void runAsync(steps),
    () => {},
  )
  outbox.complete(completion([fetched, 'a']), 0, undefined)
  outbox.complete(completion([parsed, 'b'], [fetched, 'c']), 0, undefined)
  outbox.complete(completion([fetched, 'd'], [parsed, 'e']), 0, undefined)
  while (!outbox.isIdle) {
    flushes.shift()?.()
    await new Promise(setImmediate)
  }
  assert.deepEqual(
    calls.filter((c) => c !== 'flush'),
    ['fetched: a', 'parsed: b', 'fetched: c', 'fetched: d', 'parsed: e'],
  )
})
