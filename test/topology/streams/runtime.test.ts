import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSystemClock } from '../../../connectors/clock/system.ts'
import { createRecordBatch } from '../../../connectors/log/batch.ts'
import { createMemoryLog, type MemoryLog } from '../../../connectors/log/memory.ts'
import { createMemoryStoreProvider } from '../../../connectors/store/memory.ts'
import { StopProcessError } from '../../../topology/streams/errors.ts'
import { createStreams, type StreamsOptions } from '../../../topology/streams/runtime.ts'
import { stringSerde } from '../../../topology/streams/serdes.ts'
import { Topology } from '../../../topology/streams/topology.ts'
import type { ProcessorSupplier } from '../../../topology/streams/types.ts'
import { byKey, dedupeTopology, topic } from './sample.ts'

const clock = createSystemClock()
const topics = [topic('in'), topic('out'), topic('fetched'), topic('dead')]

function setUp(options: Partial<StreamsOptions> = {}) {
  const log = createMemoryLog({ clock })
  const states: string[] = []
  const streams = createStreams({
    log,
    stores: createMemoryStoreProvider(),
    clock,
    topics,
    applications: [{ applicationId: 'test-dedupe', topology: dedupeTopology(), guarantee: 'exactly_once_v2' }],
    config: { deadLetterTopic: 'dead', commitIntervalMs: 20, pollMs: 20 },
    onEvent: (event) => event.kind === 'state' && states.push(event.to),
    ...options,
  })
  return { log, streams, states }
}

async function produce(log: MemoryLog, records: readonly (readonly [string, string])[]): Promise<void> {
  const lane = await log.lane('producer')
  const unit = lane.begin('idempotent')
  for (const [key, value] of records) {
    const batch = createRecordBatch()
    batch.add(Buffer.from(key), Buffer.from(value), 1)
    unit.append(log.partition('in', byKey(key, value, 4)), batch)
  }
  await unit.flush()
  await lane.close()
}

function valuesOf(log: MemoryLog, name: string): string[] {
  const values: string[] = []
  for (let p = 0; p < 4; p++) for (const { value } of log.records(name, p)) values.push(Buffer.from(value!).toString())
  return values.sort()
}

async function until(what: string, condition: () => boolean): Promise<void> {
  const giveUpMs = clock.monotonicMs() + 5_000
  while (!condition()) {
    assert.ok(clock.monotonicMs() < giveUpMs, `waiting until ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}

test('starts, processes what comes, survives aborts and fences, closes', async () => {
  const { log, streams, states } = setUp()
  assert.equal(streams.state(), 'CREATED')
  await streams.start()
  await produce(log, [
    ['a', '1'],
    ['b', '2'],
    ['a', '3'],
  ])
  await until('settled', streams.settled)
  log.failNextCommit('aborted')
  await produce(log, [['c', '4']])
  await until('settled again', () => streams.settled() && valuesOf(log, 'out').length === 3)
  log.failNextCommit('fenced')
  await produce(log, [
    ['d', '5'],
    ['a', '6'],
  ])
  await until('settled after the fence', () => streams.settled() && valuesOf(log, 'out').length === 4)
  log.failNextCommit('fenced', 'producer')
  await produce(log, [['e', '7']])
  await until('settled after the other fence', () => streams.settled() && valuesOf(log, 'out').length === 5)
  assert.deepEqual(valuesOf(log, 'out'), ['1', '2', '4', '5', '7'])
  const partition = byKey('a', '', 4)
  assert.equal(streams.getStore<string, number>('test-dedupe', partition, 'counts')!.get('a'), 3)
  assert.equal(streams.lag(), 0)
  assert.equal(streams.applications()[0]!.tasks.length, 4)
  await streams.close()
  assert.deepEqual(states, ['REBALANCING', 'RUNNING', 'PENDING_SHUTDOWN', 'NOT_RUNNING'])
})

test('goes on where the last run stopped', async () => {
  const log = createMemoryLog({ clock })
  const stores = createMemoryStoreProvider()
  const applications = [
    { applicationId: 'test-dedupe', topology: dedupeTopology(), guarantee: 'exactly_once_v2' as const },
  ]
  for (const [run, records] of [
    [['a', '1']],
    [
      ['a', '2'],
      ['b', '3'],
    ],
  ].entries()) {
    const streams = createStreams({ log, stores, clock, topics, applications, config: { pollMs: 10 } })
    await streams.start()
    await produce(log, records as [string, string][])
    await until('settled', () => streams.settled() && streams.lag() === 0)
    await streams.close()
    assert.equal(streams.state(), 'NOT_RUNNING', `run ${run}`)
  }
  assert.deepEqual(valuesOf(log, 'out'), ['1', '3'])
})

test('an uncaught error stops the streams and is given back', async () => {
  const error = new StopProcessError('the clock is off')
  const topology = dedupeTopology(() => ({
    process() {
      throw error
    },
  }))
  const { log, streams, states } = setUp({
    applications: [{ applicationId: 'test-dedupe', topology, guarantee: 'exactly_once_v2' }],
    onUncaughtException: () => 'replace-thread',
  })
  await streams.start()
  await produce(log, [['a', '1']])
  assert.equal(await streams.failed, error)
  assert.deepEqual(states, ['REBALANCING', 'RUNNING', 'PENDING_ERROR', 'ERROR'])
  await streams.close()
})

test('replace-thread begins again at the committed positions', async () => {
  let failures = 2
  const topology = dedupeTopology((context) => ({
    process({ key, value }) {
      context.forward({ key, value })
    },
    flush() {
      if (failures-- > 0) throw new Error('a bad moment')
    },
  }))
  const { log, streams } = setUp({
    applications: [{ applicationId: 'test-dedupe', topology, guarantee: 'exactly_once_v2' }],
    onUncaughtException: () => 'replace-thread',
  })
  await streams.start()
  await produce(log, [['a', '1']])
  await until('settled', () => streams.settled() && valuesOf(log, 'out').length > 0)
  assert.deepEqual(valuesOf(log, 'out'), ['1'])
  await streams.close()
})

test('async stages run beside the others; close lets work under way end', async () => {
  const supplier: ProcessorSupplier<string, string, string, string> = (context) => ({
    process({ key, value }) {
      context.async.take(key, (done) => {
        context.clock.setTimer(20, () => {
          context.async.complete(() => context.forward({ key, value }), done)
        })
      })
    },
  })
  const fetch = new Topology('fetch')
    .addSource('out', { topics: ['out'], keySerde: stringSerde, valueSerde: stringSerde })
    .addProcessor('fetch', supplier, ['out'])
    .addSink('fetched', { topic: 'fetched', keySerde: stringSerde, valueSerde: stringSerde, partitioner: byKey }, [
      'fetch',
    ])
  const { log, streams } = setUp({
    applications: [
      { applicationId: 'test-dedupe', topology: dedupeTopology(), guarantee: 'exactly_once_v2' },
      { applicationId: 'test-fetch', topology: fetch, guarantee: 'ack_on_take', maxInFlight: 5 },
    ],
  })
  await streams.start()
  await produce(
    log,
    Array.from({ length: 30 }, (_, i) => [`k${i}`, String(i).padStart(2, '0')]),
  )
  await until('some work is under way', () => streams.inFlight('test-fetch') > 0)
  assert.ok(streams.inFlight('test-fetch') <= 5)
  await until('all is fetched', () => streams.settled() && valuesOf(log, 'fetched').length === 30)
  await produce(log, [['last', 'last']])
  await until('the last is under way', () => streams.inFlight('test-fetch') === 1)
  await streams.close()
  assert.ok(valuesOf(log, 'fetched').includes('last'))
  assert.equal(valuesOf(log, 'fetched').length, 31)
})

test('close works before start and twice', async () => {
  const { streams } = setUp()
  await streams.close()
  await streams.close()
  assert.equal(streams.state(), 'NOT_RUNNING')
  await assert.rejects(streams.start(), /NOT_RUNNING/)
})
