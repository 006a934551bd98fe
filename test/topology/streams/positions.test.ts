import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TopologyTestDriver } from '../../../topology/streams/driver.ts'
import { stringSerde } from '../../../topology/streams/serdes.ts'
import { Topology } from '../../../topology/streams/topology.ts'
import type { ProcessorContext, ProcessorSupplier } from '../../../topology/streams/types.ts'
import { byKey, counts, dedupeTopology, topic } from './sample.ts'

test('seekToBeginning reads a topic again; the position is committed with what was written', () => {
  const seen: string[] = []
  const supplier: ProcessorSupplier<string, string, string, string> = (context) => {
    const store = context.getStateStore<string, number>('counts')
    return {
      process({ key, value }) {
        seen.push(`${value}`)
        if (value !== 'widen') return
        store.put(key, 1)
        context.seekToBeginning('links')
      },
    }
  }
  const topology = new Topology('rules')
    .addSource('links', { topics: ['links'], keySerde: stringSerde, valueSerde: stringSerde })
    .addSource('controls', { topics: ['controls'], keySerde: stringSerde, valueSerde: stringSerde })
    .addProcessor('work', supplier, ['links', 'controls'])
    .addSink('out', { topic: 'out', keySerde: stringSerde, valueSerde: stringSerde, partitioner: byKey }, ['work'])
    .addStateStore(counts, ['work'])
  const driver = new TopologyTestDriver({
    applications: [{ applicationId: 'test-rules', topology, guarantee: 'exactly_once_v2' }],
    topics: [topic('links', 1), topic('controls', 1), topic('out', 1)],
    startWallMs: 1_000,
  })
  const links = driver.createInputTopic('links', stringSerde, stringSerde)
  const controls = driver.createInputTopic('controls', stringSerde, stringSerde)
  links.enqueue('a', 'one', 1)
  links.enqueue('a', 'two', 2)
  driver.runUntilIdle()
  controls.enqueue('rule', 'widen', 3)
  links.enqueue('a', 'three', 4)
  driver.failNextCommit('aborted')
  driver.advanceWallClockTime(1_000)
  assert.deepEqual(seen.slice(0, 3), ['one', 'two', 'widen'])
  // Once for the aborted unit at most, then for good: the last run has the whole topic once.
  assert.deepEqual(seen.slice(-3), ['one', 'two', 'three'])
  assert.equal(seen.filter((v) => v === 'widen').length, 2)
  assert.equal(driver.getKeyValueStore<string, number>('test-rules', 'counts').get('rule'), 1)
  assert.ok(driver.settled())
})

test('caughtUp is false until what was there at the start is read; position has a fresh end', () => {
  const contexts: ProcessorContext[] = []
  const seen: string[] = []
  const supplier: ProcessorSupplier<string, string, string, string> = (context) => {
    contexts.push(context)
    return {
      process({ value }) {
        const { next, high } = context.position('in')
        seen.push(`${value} ${context.caughtUp()} ${next}/${high}`)
      },
    }
  }
  const topology = new Topology('one')
    .addSource('in', { topics: ['in'], keySerde: stringSerde, valueSerde: stringSerde })
    .addProcessor('work', supplier, ['in'])
  const driver = new TopologyTestDriver({
    applications: [{ applicationId: 'test-one', topology, guarantee: 'exactly_once_v2' }],
    topics: [topic('in', 1)],
    startWallMs: 1_000,
  })
  assert.equal(contexts[0]!.caughtUp(), true)
  const input = driver.createInputTopic('in', stringSerde, stringSerde)
  for (const value of ['a', 'b', 'c']) input.enqueue('k', value)
  driver.restart()
  input.enqueue('k', 'd')
  driver.runUntilIdle()
  assert.deepEqual(seen, ['a false 1/4', 'b false 2/4', 'c true 3/4', 'd true 4/4'])
  assert.deepEqual(contexts[1]!.position('in'), { next: 4, high: 4, highAtMs: 1_000 })
})

test('resume end starts at the end, after an abort too', () => {
  const seen: string[] = []
  const supplier: ProcessorSupplier<string, string, string, string> = () => ({
    process({ value }) {
      seen.push(`${value}`)
    },
  })
  const topology = new Topology('late')
    .addSource('in', { topics: ['in'], keySerde: stringSerde, valueSerde: stringSerde })
    .addProcessor('work', supplier, ['in'])
  const driver = new TopologyTestDriver({
    applications: [{ applicationId: 'test-late', topology, guarantee: 'exactly_once_v2', resume: 'end' }],
    topics: [topic('in', 1)],
    startWallMs: 1_000,
  })
  const input = driver.createInputTopic('in', stringSerde, stringSerde)
  input.enqueue('k', 'void')
  driver.restart()
  input.enqueue('k', 'one')
  driver.failNextCommit('aborted')
  driver.advanceWallClockTime(1_000)
  driver.failNextCommit('fenced')
  input.enqueue('k', 'two')
  driver.advanceWallClockTime(1_000)
  assert.deepEqual(seen, ['one', 'one', 'two', 'two'])
  assert.ok(driver.settled())
})

test('restore: from the checkpoint, or all of the changelog after a wipe', () => {
  const restored: number[] = []
  const driver = new TopologyTestDriver({
    applications: [{ applicationId: 'test-dedupe', topology: dedupeTopology(), guarantee: 'exactly_once_v2' }],
    topics: [topic('in', 1), topic('out', 1)],
    startWallMs: 1_000,
    config: { restoreBatchBytes: 64 },
    onEvent: (event) => event.kind === 'task-ready' && restored.push(event.restored),
  })
  const input = driver.createInputTopic('in', stringSerde, stringSerde)
  for (const key of ['a', 'b', 'a', 'c']) input.pipeInput(key, 'v')
  driver.restart()
  driver.restart(undefined, { wipeStores: true })
  assert.deepEqual(restored, [0, 0, 4])
  const entries = [...driver.getKeyValueStore('test-dedupe', 'counts').range(undefined, undefined)]
  assert.deepEqual(entries, [
    ['a', 2],
    ['b', 1],
    ['c', 1],
  ])
  input.pipeInput('a', 'again')
  assert.equal(driver.createOutputTopic('out', stringSerde, stringSerde).getQueueSize(), 3)
})

test('inputs of one sub-topology with unequal partition counts are refused by name', () => {
  const topology = new Topology('t')
    .addSource('s', { topics: ['in', 'in2'], keySerde: stringSerde, valueSerde: stringSerde })
    .addProcessor('p', () => ({ process() {} }), ['s'])
  const make = (topics: ReturnType<typeof topic>[]) => () =>
    new TopologyTestDriver({
      applications: [{ applicationId: 'test-t', topology, guarantee: 'exactly_once_v2' }],
      topics,
      startWallMs: 0,
    })
  assert.throws(make([topic('in', 2), topic('in2', 3)]), /topic "in" has 2 partitions and "in2" has 3/)
  assert.throws(make([topic('in', 2)]), /topic "in2" is not in the catalogue/)
})
