import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TopologyTestDriver } from '../../../topology/streams/driver.ts'
import { stringSerde } from '../../../topology/streams/serdes.ts'
import { Topology } from '../../../topology/streams/topology.ts'
import type { ProcessorSupplier } from '../../../topology/streams/types.ts'
import { byKey, dedupeTopology, random, topic } from './sample.ts'

const applicationId = 'test-dedupe'

class Crash extends Error {}

/** Beside it: an async stage over the output, whose commits fail as the others do. */
function fetchTopology(): Topology {
  const supplier: ProcessorSupplier<string, string, string, string> = (context) => ({
    process({ key, value }) {
      context.async.take(key, (done) => {
        context.clock.setTimer(30, () => context.async.complete(() => context.forward({ key, value }), done))
      })
    },
  })
  const serdes = { keySerde: stringSerde, valueSerde: stringSerde }
  return new Topology('fetch')
    .addSource('out', { topics: ['out'], ...serdes })
    .addProcessor('fetch', supplier, ['out'])
    .addSink('fetched', { topic: 'fetched', partitioner: byKey, ...serdes }, ['fetch'])
}

function open(crashes: { at: number } = { at: 0 }, maxStagedBytes = 1 << 20) {
  return new TopologyTestDriver({
    applications: [
      { applicationId, topology: dedupeTopology(), guarantee: 'exactly_once_v2' },
      { applicationId: 'test-fetch', topology: fetchTopology(), guarantee: 'ack_on_take', maxInFlight: 5 },
    ],
    topics: [topic('in'), topic('out'), topic('fetched'), topic('dead')],
    startWallMs: 1_000_000,
    deadLetterTopic: 'dead',
    config: { maxStagedBytes },
    faults: {
      hit(point) {
        if (point === 'committed' && crashes.at > 0 && --crashes.at === 0) throw new Crash()
      },
    },
  })
}

test('dedupe forwards each key once and counts all', () => {
  const driver = open()
  const input = driver.createInputTopic('in', stringSerde, stringSerde)
  input.pipeInput('a', '1')
  input.pipeInput('b', '2')
  input.pipeInput('a', '3')
  const output = driver.createOutputTopic('out', stringSerde, stringSerde)
  assert.deepEqual([...output.readKeyValuesToMap()].sort(), [
    ['a', '1'],
    ['b', '2'],
  ])
  assert.equal(totalOf(driver, 'a'), 2)
  assert.ok(!driver.settled(), 'two fetches are under way')
  driver.advanceWallClockTime(100)
  assert.ok(driver.settled())
  assert.deepEqual([...driver.producedTopicNames()].sort(), ['fetched', 'out', 'test-dedupe-counts-changelog'])
})

const seeds = process.env.WEIR_TEST_SEED ? [Number(process.env.WEIR_TEST_SEED)] : [1, 2, 3, 4, 5, 6, 7, 8]
for (const seed of seeds) {
  test(`exactly once under aborts, fences, crashes and restarts (WEIR_TEST_SEED=${seed})`, () => {
    const rand = random(seed)
    const crashes = { at: 0 }
    const driver = open(crashes, 200 + Math.floor(rand() * 4_000))
    const input = driver.createInputTopic('in', stringSerde, stringSerde)
    const counts = new Map<string, number>()
    const first = new Map<string, string>()
    let faults = 0
    let restarts = 0
    for (let step = 0; step < 150; step++) {
      for (let n = Math.floor(rand() * 40); n > 0; n--) {
        const key = `key-${Math.floor(rand() ** 2 * 400)}`
        const value = `${step}-${n}`
        counts.set(key, (counts.get(key) ?? 0) + 1)
        if (!first.has(key)) first.set(key, value)
        input.enqueue(key, value)
      }
      const dice = rand()
      if (dice < 0.15) driver.failNextCommit('aborted')
      else if (dice < 0.25) driver.failNextCommit('fenced', rand() < 0.5 ? 'epoch' : 'producer')
      else if (dice < 0.4) crashes.at = 1 + Math.floor(rand() * 3)
      if (dice < 0.4) faults++
      try {
        if (rand() < 0.7) driver.advanceWallClockTime(Math.floor(rand() * 500))
        else driver.runUntilIdle()
      } catch (error) {
        assert.ok(error instanceof Crash, String(error))
        restarts++
        driver.restart(undefined, { wipeStores: rand() < 0.3 })
      }
      if (rand() < 0.1) {
        restarts++
        driver.restart(rand() < 0.5 ? applicationId : undefined, { wipeStores: rand() < 0.3 })
      }
    }
    crashes.at = 0
    driver.advanceWallClockTime(60_000)
    assert.ok(faults > 10)

    const output = driver.createOutputTopic('out', stringSerde, stringSerde)
    const records = output.readRecordsToList()
    assert.equal(records.length, first.size, 'each key once')
    assert.deepEqual(new Map(records.map((r) => [r.key, r.value])), first)
    const stored = new Map<string, number>()
    for (const store of driver.getAllStateStores().values()) {
      for (const [key, count] of store.range(undefined, undefined)) stored.set(String(key), Number(count))
    }
    assert.deepEqual(stored, counts)
    assert.ok(driver.settled())
    for (const { inputs } of driver.applications().flatMap((a) => a.tasks)) {
      for (const { committed, end } of inputs) assert.equal(committed ?? 0, end)
    }
    // What was under way at a crash is lost, and nothing else: at most 5 each time, and nothing is fetched twice.
    const fetched = driver.createOutputTopic('fetched', stringSerde, stringSerde).readRecordsToList()
    assert.equal(new Set(fetched.map((r) => r.key)).size, fetched.length)
    for (const { key, value } of fetched) assert.equal(value, first.get(key))
    assert.ok(
      fetched.length >= first.size - 5 * restarts,
      `${fetched.length} of ${first.size} after ${restarts} restarts`,
    )
    assert.ok(driver.createOutputTopic('dead', stringSerde, stringSerde).isEmpty())
  })
}

function totalOf(driver: TopologyTestDriver, key: string): number {
  let total = 0
  for (let partition = 0; partition < 4; partition++) {
    total += driver.getKeyValueStore<string, number>(applicationId, 'counts', partition).get(key) ?? 0
  }
  return total
}
