import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Headers } from '../../../connectors/log/types.ts'
import { TopologyTestDriver } from '../../../topology/streams/driver.ts'
import { RetryError, StopProcessError, StopTaskError } from '../../../topology/streams/errors.ts'
import type { StreamsEvent } from '../../../topology/streams/events.ts'
import { bytesSerde, stringSerde } from '../../../topology/streams/serdes.ts'
import { Topology } from '../../../topology/streams/topology.ts'
import type { ProcessorSupplier, Serde } from '../../../topology/streams/types.ts'
import { byKey, counts, topic } from './sample.ts'

const pickySerde: Serde<string> = {
  serialize(value) {
    if (value === 'unserializable') throw new Error('no bytes for this')
    return Buffer.from(value)
  },
  deserialize: (bytes) => stringSerde.deserialize(bytes),
}

function open(supplier: ProcessorSupplier<string, string, string, string>, events: StreamsEvent[] = []) {
  const topology = new Topology('work')
    .addSource('in', { topics: ['in'], keySerde: stringSerde, valueSerde: stringSerde })
    .addProcessor('work', supplier, ['in'])
    .addSink('out', { topic: 'out', keySerde: stringSerde, valueSerde: pickySerde, partitioner: byKey }, ['work'])
    .addStateStore(counts, ['work'])
  return new TopologyTestDriver({
    applications: [{ applicationId: 'test-work', topology, guarantee: 'exactly_once_v2' }],
    topics: [topic('in', 2), topic('out', 2, 100), topic('dead', 2)],
    startWallMs: 1_000,
    deadLetterTopic: 'dead',
    onEvent: (event) => events.push(event),
  })
}

/** Writes, forwards, then fails as the value says. */
const failing: ProcessorSupplier<string, string, string, string> = (context) => {
  const store = context.getStateStore<string, number>('counts')
  return {
    process({ key, value }) {
      store.put(key, (store.get(key) ?? 0) + 1)
      context.forward({ key, value: `got ${value}` })
      if (value === 'throw') throw new TypeError('as asked')
      if (value === 'unserializable') context.forward({ key, value: 'unserializable' })
      if (value === 'large') context.forward({ key, value: 'x'.repeat(200) })
    },
  }
}

function headersOf(headers: Headers | undefined): { [name: string]: string } {
  return Object.fromEntries((headers ?? []).map(([name, value]) => [name, Buffer.from(value).toString()]))
}

for (const [value, exception] of [
  ['throw', 'TypeError'],
  ['unserializable', 'RecordError/serialization'],
  ['large', 'RecordError/record-too-large'],
] as const) {
  test(`a record whose processing fails (${value}) goes to the dead letters and leaves nothing behind`, () => {
    const driver = open(failing)
    const input = driver.createInputTopic('in', stringSerde, stringSerde, () => 1)
    input.enqueue('a', 'fine')
    input.enqueue('a', value, 77, [['mine', Buffer.from('kept')]])
    input.enqueue('a', 'fine too')
    driver.runUntilIdle()
    const output = driver.createOutputTopic('out', stringSerde, stringSerde)
    assert.deepEqual(
      output.readRecordsToList().map((r) => r.value),
      ['got fine', 'got fine too'],
    )
    assert.equal(driver.getKeyValueStore<string, number>('test-work', 'counts', 1).get('a'), 2)
    const letter = driver.createOutputTopic('dead', stringSerde, stringSerde).readRecord()
    assert.deepEqual([letter.key, letter.value, letter.partition, letter.timestamp], ['a', value, 1, 77])
    const headers = headersOf(letter.headers)
    assert.equal(headers['__streams.errors.exception'], exception)
    assert.equal(headers['__streams.errors.topic'], 'in')
    assert.equal(headers['__streams.errors.partition'], '1')
    assert.equal(headers['__streams.errors.offset'], '1')
    assert.ok(headers['__streams.errors.message']!.length > 0)
    assert.match(headers['__streams.errors.stacktrace']!, /at /)
    assert.equal(headers.mine, 'kept')
    assert.ok(driver.settled())
  })
}

test('bytes that cannot be read keep their raw form', () => {
  const driver = open(failing)
  const input = driver.createInputTopic('in', stringSerde, stringSerde)
  const bad = Uint8Array.of(0xff, 0xfe)
  input.enqueueRaw(0, Buffer.from('k'), bad)
  input.enqueueRaw(1, bad, Buffer.from('v'))
  driver.runUntilIdle()
  const letters = driver.createOutputTopic('dead', bytesSerde, bytesSerde).readRecordsToList()
  assert.deepEqual(
    letters.map((l) => [Buffer.from(l.key).toString('hex'), Buffer.from(l.value!).toString('hex')]),
    [
      ['6b', 'fffe'],
      ['fffe', '76'],
    ],
  )
  for (const letter of letters) {
    assert.equal(headersOf(letter.headers)['__streams.errors.exception'], 'RecordError/deserialization')
  }
})

test('a dead letter is part of the unit: an aborted one leaves one letter', () => {
  const driver = open(failing)
  driver.failNextCommit('aborted')
  driver.createInputTopic('in', stringSerde, stringSerde).pipeInput('a', 'throw')
  driver.advanceWallClockTime(1_000)
  assert.equal(driver.createOutputTopic('dead', stringSerde, stringSerde).getQueueSize(), 1)
})

test('RetryError: the record waits and is charged nothing', () => {
  let isAway = true
  const events: StreamsEvent[] = []
  const driver = open(
    (context) => ({
      process({ key, value }) {
        context.forward({ key, value: `${value}` })
        if (isAway) throw new RetryError('the server is away', 500)
      },
    }),
    events,
  )
  driver.createInputTopic('in', stringSerde, stringSerde).pipeInput('a', '1')
  driver.advanceWallClockTime(1_200)
  const output = driver.createOutputTopic('out', stringSerde, stringSerde)
  assert.ok(output.isEmpty())
  assert.equal(events.filter((e) => e.kind === 'retry').length, 3)
  assert.ok(!driver.settled())
  isAway = false
  driver.advanceWallClockTime(500)
  assert.deepEqual(output.readKeyValuesToList(), [['a', '1']])
  assert.ok(driver.settled())
  assert.ok(driver.createOutputTopic('dead', stringSerde, stringSerde).isEmpty())
})

test('StopTaskError stops one task; what came before is committed, the others go on', () => {
  const events: StreamsEvent[] = []
  const driver = open(
    (context) => ({
      process({ key, value }) {
        if (value === 'stop') throw new StopTaskError('cannot go on')
        context.forward({ key, value: `${value}` })
      },
    }),
    events,
  )
  const input = driver.createInputTopic('in', stringSerde, stringSerde, (key) => Number(key))
  for (const [key, value] of [
    ['0', 'before'],
    ['0', 'stop'],
    ['0', 'after'],
    ['1', 'other'],
  ] as const)
    input.enqueue(key, value)
  driver.advanceWallClockTime(1_000)
  input.pipeInput('1', 'later')
  const values = driver
    .createOutputTopic('out', stringSerde, stringSerde)
    .readRecordsToList()
    .map((r) => r.value)
  assert.deepEqual(values.sort(), ['before', 'later', 'other'])
  const [stopped, running] = driver.applications()[0]!.tasks
  assert.deepEqual([stopped!.status, stopped!.inputs[0]!.committed, stopped!.lag], ['stopped', 1, 2])
  assert.deepEqual([running!.status, running!.lag], ['running', 0])
  assert.equal(events.filter((e) => e.kind === 'task-stopped').length, 1)
})

test('StopProcessError stops everything and commits nothing of the unit', () => {
  let isWrong = true
  const driver = open((context) => ({
    process({ key, value }) {
      context.forward({ key, value: `${value}` })
      if (isWrong && value === 'skewed') throw new StopProcessError('the clock is off')
    },
  }))
  const input = driver.createInputTopic('in', stringSerde, stringSerde, () => 0)
  input.enqueue('a', 'fine')
  input.enqueue('a', 'skewed')
  assert.throws(() => driver.runUntilIdle(), { code: 'stop-process' })
  const output = driver.createOutputTopic('out', stringSerde, stringSerde)
  assert.ok(output.isEmpty())
  isWrong = false
  driver.restart()
  driver.runUntilIdle()
  assert.deepEqual(
    output.readRecordsToList().map((r) => r.value),
    ['fine', 'skewed'],
  )
})
