import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TopologyTestDriver } from '../../../topology/streams/driver.ts'
import { stringSerde } from '../../../topology/streams/serdes.ts'
import { Topology } from '../../../topology/streams/topology.ts'
import type { Cancellable, ProcessorSupplier } from '../../../topology/streams/types.ts'
import { byKey, simpleTopology, topic } from './sample.ts'

type Supplier = ProcessorSupplier<string, string, string, string>

function open(supplier: Supplier, topology = simpleTopology(supplier, stringSerde, stringSerde)) {
  return new TopologyTestDriver({
    applications: [{ applicationId: 'test-time', topology, guarantee: 'exactly_once_v2' }],
    topics: [topic('in', 1), topic('in2', 1), topic('out', 1)],
    startWallMs: 1_000_000,
  })
}

test('wall-clock punctuations come at their times, with now as timestamp, and can be cancelled', () => {
  let cancellable: Cancellable | undefined
  const driver = open((context) => ({
    init() {
      cancellable = context.schedule(200, 'wall-clock-time', (at) =>
        context.forward({ key: 'tick', value: String(at) }),
      )
    },
    process() {},
  }))
  const output = driver.createOutputTopic('out', stringSerde, stringSerde)
  driver.advanceWallClockTime(199)
  assert.ok(output.isEmpty())
  driver.advanceWallClockTime(401)
  const ticks = output.readRecordsToList()
  assert.deepEqual(
    ticks.map((r) => r.value),
    ['1000200', '1000400', '1000600'],
  )
  assert.deepEqual(
    ticks.map((r) => r.timestamp),
    [1_000_200, 1_000_400, 1_000_600],
  )
  cancellable!.cancel()
  driver.advanceWallClockTime(1_000)
  assert.ok(output.isEmpty())
})

test('stream time moves with records alone; one call makes up for missed punctuations', () => {
  const driver = open((context) => ({
    init() {
      context.schedule(100, 'stream-time', (at) => context.forward({ key: 'tick', value: String(at) }))
    },
    process() {},
  }))
  const input = driver.createInputTopic('in', stringSerde, stringSerde)
  const output = driver.createOutputTopic('out', stringSerde, stringSerde)
  driver.advanceWallClockTime(10_000)
  assert.ok(output.isEmpty())
  for (const timestamp of [1_050, 1_099, 1_100, 1_020, 1_555, 1_599, 1_600]) input.pipeInput('k', 'v', timestamp)
  assert.deepEqual(
    output.readRecordsToList().map((r) => r.value),
    ['1050', '1100', '1555', '1600'],
  )
})

test('a forwarded record has the timestamp of its input unless it names one', () => {
  const driver = open((context) => ({
    process({ key, value }) {
      context.forward({ key, value })
      context.forward({ key, value, timestamp: 5 })
    },
  }))
  driver.createInputTopic('in', stringSerde, stringSerde).pipeInput('a', 'v', 42)
  const output = driver.createOutputTopic('out', stringSerde, stringSerde)
  assert.deepEqual(
    output.readRecordsToList().map((r) => r.timestamp),
    [42, 5],
  )
})

test('of several inputs the record with the lowest timestamp is next, then the source added first', () => {
  const seen: string[] = []
  const supplier: Supplier = (context) => ({
    process({ value }) {
      const { topic: name, offset } = context.recordMetadata()!
      seen.push(`${value} ${name}/${offset} ${context.currentStreamTimeMs()}`)
    },
  })
  const topology = new Topology('two')
    .addSource('in', { topics: ['in'], keySerde: stringSerde, valueSerde: stringSerde })
    .addSource('in2', {
      topics: ['in2'],
      keySerde: stringSerde,
      valueSerde: stringSerde,
      // The time is in the value.
      timestampExtractor: ({ value }) => Number(value!.slice(1)),
    })
    .addProcessor('work', supplier, ['in', 'in2'])
    .addSink('out', { topic: 'out', keySerde: stringSerde, valueSerde: stringSerde, partitioner: byKey }, ['work'])
  const driver = open(supplier, topology)
  const first = driver.createInputTopic('in', stringSerde, stringSerde)
  const second = driver.createInputTopic('in2', stringSerde, stringSerde)
  for (const t of [10, 30, 20]) first.enqueue('k', `a${t}`, t)
  for (const t of [10, 25, 40]) second.enqueue('k', `b${t}`, 999)
  driver.runUntilIdle()
  assert.deepEqual(seen, ['a10 in/0 10', 'b10 in2/0 10', 'b25 in2/1 25', 'a30 in/1 30', 'a20 in/2 30', 'b40 in2/2 40'])
})

test('flush emits sums once for each commit', () => {
  const driver = open((context) => {
    let sum = 0
    return {
      process() {
        sum++
      },
      flush() {
        if (sum > 0) context.forward({ key: 'sum', value: String(sum) })
        sum = 0
      },
    }
  })
  const input = driver.createInputTopic('in', stringSerde, stringSerde)
  for (let i = 0; i < 10; i++) input.enqueue('k', 'v')
  driver.failNextCommit('aborted')
  driver.advanceWallClockTime(100)
  input.pipeInput('k', 'v')
  const output = driver.createOutputTopic('out', stringSerde, stringSerde)
  assert.deepEqual(
    output.readRecordsToList().map((r) => r.value),
    ['10', '1'],
  )
})
