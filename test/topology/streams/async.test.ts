import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FaultPoint } from '../../../connectors/faults/types.ts'
import { TopologyTestDriver } from '../../../topology/streams/driver.ts'
import { stringSerde } from '../../../topology/streams/serdes.ts'
import { Topology } from '../../../topology/streams/topology.ts'
import type { ProcessorContext, ProcessorSupplier } from '../../../topology/streams/types.ts'
import { byKey, topic } from './sample.ts'

type Supplier = ProcessorSupplier<string, string, string, string>
const applicationId = 'test-fetch'

function fetchTopology(supplier: Supplier): Topology {
  const sink = { keySerde: stringSerde, valueSerde: stringSerde, partitioner: byKey }
  return new Topology('fetch')
    .addSource('visits', { topics: ['visits'], keySerde: stringSerde, valueSerde: stringSerde })
    .addProcessor('fetch', supplier, ['visits'])
    .addSink('pages', { topic: 'pages', ...sink }, ['fetch'])
    .addSink('done', { topic: 'done', ...sink }, ['fetch'])
}

function open(supplier: Supplier, maxInFlight = 100, hit: (point: FaultPoint) => void = () => {}) {
  return new TopologyTestDriver({
    applications: [{ applicationId, topology: fetchTopology(supplier), guarantee: 'ack_on_take', maxInFlight }],
    topics: [topic('visits', 2), topic('pages', 2), topic('done', 2), topic('dead', 2)],
    startWallMs: 1_000,
    deadLetterTopic: 'dead',
    faults: { hit },
  })
}

/** Each visit takes 100 ms; `running` is what runs now, `events` what happened. */
function slow(events: string[], running: Set<string>): Supplier {
  return (context) => ({
    process({ key, value }) {
      if (value === 'bad') throw new Error('bad visit')
      context.async.take(key, (done) => {
        events.push(`start ${value}`)
        running.add(`${value}`)
        context.clock.setTimer(100, () => {
          running.delete(`${value}`)
          context.async.complete(
            () => {
              context.forward({ key, value: `page of ${value}` }, 'pages')
              context.forward({ key, value: `${value}` }, 'done')
            },
            () => events.push(`acked ${value}`),
          )
          done()
        })
      })
    },
  })
}

test('work starts after the commit of its offset, and its outputs are acknowledged', () => {
  const events: string[] = []
  const driver = open(slow(events, new Set()), 100, (point) => events.push(point))
  const input = driver.createInputTopic('visits', stringSerde, stringSerde)
  input.enqueue('h', 'v1')
  driver.runUntilIdle()
  assert.deepEqual(events, ['visit-committed', 'start v1'])
  assert.equal(driver.inFlight(), 1)
  assert.ok(!driver.settled())
  driver.advanceWallClockTime(100)
  assert.deepEqual(events, ['visit-committed', 'start v1', 'acked v1'])
  assert.equal(driver.createOutputTopic('pages', stringSerde, stringSerde).readRecord().timestamp, 1_100)
  assert.equal(driver.createOutputTopic('done', stringSerde, stringSerde).readValue(), 'v1')
  assert.ok(driver.settled())
})

test('one at a time for each key, in the order of taking', () => {
  const events: string[] = []
  const driver = open(slow(events, new Set()))
  const input = driver.createInputTopic('visits', stringSerde, stringSerde)
  for (const [key, value] of [
    ['a', 'a1'],
    ['a', 'a2'],
    ['b', 'b1'],
    ['a', 'a3'],
  ] as const)
    input.enqueue(key, value, 1)
  driver.advanceWallClockTime(1_000)
  const of = (key: string) => events.filter((e) => e.includes(` ${key}`))
  assert.deepEqual(of('a'), ['start a1', 'acked a1', 'start a2', 'acked a2', 'start a3', 'acked a3'])
  assert.deepEqual(of('b'), ['start b1', 'acked b1'])
})

test('at most maxInFlight run; inputs pause above and nothing is lost', () => {
  const running = new Set<string>()
  const driver = open(slow([], running), 3)
  const input = driver.createInputTopic('visits', stringSerde, stringSerde)
  for (let i = 0; i < 40; i++) input.enqueue(`host${i}`, `v${i}`)
  driver.runUntilIdle()
  let most = 0
  for (let t = 0; t < 2_000; t += 50) {
    most = Math.max(most, running.size)
    assert.ok(running.size <= 3 && driver.inFlight() <= 3)
    driver.advanceWallClockTime(50)
  }
  assert.equal(most, 3)
  const done = driver.createOutputTopic('done', stringSerde, stringSerde).readRecordsToList()
  assert.equal(new Set(done.map((r) => r.value)).size, 40)
  assert.equal(done.length, 40)
  assert.ok(driver.settled())
})

for (const kind of ['aborted', 'fenced'] as const) {
  test(`a take whose commit is ${kind} is dropped and taken again; work under way goes on`, () => {
    const events: string[] = []
    const driver = open(slow(events, new Set()))
    const input = driver.createInputTopic('visits', stringSerde, stringSerde)
    input.pipeInput('a', 'first')
    driver.failNextCommit(kind)
    input.pipeInput('b', 'second')
    driver.advanceWallClockTime(1_000)
    assert.deepEqual(events, ['start first', 'start second', 'acked first', 'acked second'])
    assert.ok(driver.settled())
  })
}

test('after a crash work that was taken is not taken again, and late completions count for nothing', () => {
  const events: string[] = []
  const driver = open(slow(events, new Set()))
  const input = driver.createInputTopic('visits', stringSerde, stringSerde)
  input.pipeInput('a', 'lost')
  driver.restart()
  assert.equal(driver.inFlight(), 0)
  driver.advanceWallClockTime(1_000)
  assert.deepEqual(events, ['start lost'])
  assert.ok(driver.createOutputTopic('done', stringSerde, stringSerde).isEmpty())
  input.pipeInput('a', 'next')
  driver.advanceWallClockTime(1_000)
  assert.deepEqual(events, ['start lost', 'start next', 'acked next'])
})

test('a take that fails goes to the dead letters, before its offset is committed', () => {
  const driver = open(slow([], new Set()))
  const input = driver.createInputTopic('visits', stringSerde, stringSerde)
  input.pipeInput('a', 'bad')
  assert.equal(driver.createOutputTopic('dead', stringSerde, stringSerde).readValue(), 'bad')
  assert.ok(driver.settled())
})

test('a completion that throws leaves nothing behind and tells its caller', () => {
  let context: ProcessorContext<string, string> | undefined
  const driver = open((c) => {
    context = c
    return { process() {} }
  })
  const { async } = context!
  assert.throws(() =>
    async.complete(() => {
      context!.forward({ key: 'k', value: 'half' }, 'pages')
      throw new Error('changed my mind')
    }),
  )
  assert.throws(() => context!.forward({ key: 'k', value: 'v' }), /forwards outside a record/)
  async.complete(() => context!.forward({ key: 'k', value: 'whole' }, 'pages'))
  const pages = driver.createOutputTopic('pages', stringSerde, stringSerde)
  assert.deepEqual(pages.readKeyValuesToList(), [['k', 'whole']])
})

test('work that ends at once does not nest', () => {
  const driver = open((context) => ({
    process({ key }) {
      context.async.take(key, (done) => done())
    },
  }))
  const input = driver.createInputTopic('visits', stringSerde, stringSerde)
  for (let i = 0; i < 20_000; i++) input.enqueue('one host', 'v')
  driver.runUntilIdle()
  assert.ok(driver.settled())
})
