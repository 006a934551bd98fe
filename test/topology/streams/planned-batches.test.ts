import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createVirtualClock, type VirtualClock } from '../../../connectors/clock/virtual.ts'
import { createRecordBatch } from '../../../connectors/log/batch.ts'
import { createMemoryLog, type MemoryLog } from '../../../connectors/log/memory.ts'
import type { TopicSpec } from '../../../connectors/log/types.ts'
import {
  createPlannedBatches,
  type PlannedBatches,
  type PlannedBatchesOptions,
} from '../../../topology/streams/planned-batches.ts'
import { readPlan, writePlan } from '../../../topology/streams/planned-input.ts'
import type { PlannedBatch, PlannedBatchesEvent, Refused } from '../../../topology/streams/planned-types.ts'
import { stringSerde } from '../../../topology/streams/serdes.ts'
import { Topology } from '../../../topology/streams/topology.ts'

const partitions = 2
const spec = (name: string): TopicSpec => ({ name, partitions, cleanup: 'compact', maxRecordBytes: 10_000 })
const topics = [spec('a'), spec('b'), spec('dead')]
const serdes = { keySerde: stringSerde, valueSerde: stringSerde }
const topology = new Topology('out')
  .addSource('a', { topics: ['a'], ...serdes })
  .addSource('b', { topics: ['b'], ...serdes })
  .addProcessor('out', () => ({ process() {} }), ['a', 'b'])

/** What a receiver has: each token once. */
class Receiver {
  generation = 'g1'
  readonly known: (readonly string[])[] = []
  readonly tokens: string[] = []
  readonly got: string[] = []
  /** Delivers, then behaves as if the answer was lost. */
  losesAnswers = 0
  isAway = false
  readonly refused = new Set<string>()

  async deliver({ token, records }: PlannedBatch<string>): Promise<readonly Refused[]> {
    if (this.isAway) throw new Error('away')
    const isNew = !this.tokens.includes(token)
    this.tokens.push(token)
    const taken = records.filter((r) => !this.refused.has(r.item))
    if (isNew) this.got.push(...taken.map((r) => r.item))
    if (this.losesAnswers-- > 0) throw new Error('no answer')
    return records
      .filter((r) => this.refused.has(r.item))
      .map(({ offset }) => ({ offset, error: new Error('refused') }))
  }
}

async function setUp(): Promise<{ log: MemoryLog; clock: VirtualClock }> {
  const clock = createVirtualClock(0)
  const log = createMemoryLog({ clock })
  await log.ensure(topics)
  return { log, clock }
}

async function write(log: MemoryLog, topic: string, partition: number, values: readonly string[]): Promise<void> {
  const batch = createRecordBatch()
  for (const value of values) batch.add(Buffer.from('k'), Buffer.from(value), 1)
  const lane = await log.lane(`writer-${topic}-${partition}`)
  const unit = lane.begin('atomic')
  unit.append(log.partition(topic, partition), batch)
  await unit.commit([])
  await lane.close()
}

interface Running {
  readonly batches: PlannedBatches
  readonly events: PlannedBatchesEvent[]
}

function start(
  { log, clock }: Awaited<ReturnType<typeof setUp>>,
  receiver: Receiver,
  more: Partial<PlannedBatchesOptions<string>> = {},
): Running {
  const events: PlannedBatchesEvent[] = []
  const batches = createPlannedBatches<string>({
    log,
    clock,
    applicationId: 'weir-out',
    instanceId: 'i',
    topology,
    topics,
    deadLetterTopic: 'dead',
    receiver: {
      async open(known) {
        receiver.known.push([...known])
        if (receiver.isAway) throw new Error('away')
        return receiver.generation
      },
      prepare({ value }) {
        const text = Buffer.from(value!).toString()
        if (text === 'unreadable') throw new Error('unreadable')
        return text
      },
      deliver: (batch) => receiver.deliver(batch),
      isFatal: (error) => (error as Error).message === 'fatal',
    },
    onEvent: (event) => events.push(event),
    ...more,
  })
  batches.start()
  return { batches, events }
}

/** Lets promises run and time pass until something holds. */
async function until(clock: VirtualClock, holds: () => boolean): Promise<void> {
  for (let n = 0; n < 3000; n++) {
    await new Promise(setImmediate)
    if (holds()) return
    clock.advanceTo(clock.monotonicMs() + 20)
  }
  assert.fail('it does not happen')
}

async function finish(run: { clock: VirtualClock }, { batches }: Running): Promise<number> {
  let left: number | undefined
  void batches.drain(5_000).then((n) => {
    left = n
  })
  await until(run.clock, () => left !== undefined)
  await batches.close()
  return left!
}

test('everything that is in the log arrives once, in order of each partition, and the positions are at the ends', async () => {
  const run = await setUp()
  const receiver = new Receiver()
  const first = start(run, receiver)
  await write(run.log, 'a', 0, ['a0', 'a1'])
  await write(run.log, 'b', 1, ['b0'])
  await until(run.clock, () => receiver.got.length === 3)
  await write(run.log, 'a', 0, ['a2'])
  assert.equal(await finish(run, first), 0)
  assert.deepEqual([...receiver.got].sort(), ['a0', 'a1', 'a2', 'b0'])
  assert.equal(new Set(receiver.tokens).size, receiver.tokens.length)

  const again = start(run, receiver)
  await write(run.log, 'a', 1, ['a3'])
  assert.equal(await finish(run, again), 0)
  assert.deepEqual(receiver.known, [[], ['g1']])
  assert.equal(receiver.got.length, 5)
})

test('after a crash exactly the planned range is delivered under the same token, also when more has come since', async () => {
  for (const point of ['batch-planned', 'batch-delivered'] as const) {
    const run = await setUp()
    const receiver = new Receiver()
    await write(run.log, 'a', 0, ['a0', 'a1'])
    let crashed = false
    const dying = start(run, receiver, {
      faults: {
        hit(at) {
          if (at !== point) return
          crashed = true
          // Nothing runs any more in a killed process: here its lane is taken away.
          throw new Error('fatal')
        },
      },
    })
    await until(run.clock, () => crashed)
    await dying.batches.close()
    const before = [...receiver.tokens]
    assert.equal(before.length, point === 'batch-planned' ? 0 : 1)
    await write(run.log, 'a', 0, ['a2'])
    assert.equal(await finish(run, start(run, receiver)), 0)
    assert.deepEqual(receiver.got, ['a0', 'a1', 'a2'])
    assert.match(receiver.tokens.at(before.length)!, /:0:0-2$/)
    if (before.length > 0) assert.equal(receiver.tokens[1], before[0])
  }
})

test('a lost answer is asked for again with the same token; an outage is told once, and its end', async () => {
  const run = await setUp()
  const receiver = new Receiver()
  receiver.losesAnswers = 2
  await write(run.log, 'a', 0, ['a0'])
  const running = start(run, receiver)
  await until(run.clock, () => running.events.length === 2)
  assert.deepEqual(
    running.events.map((e) => e.kind),
    ['unavailable', 'available'],
  )
  assert.deepEqual([receiver.tokens.length, new Set(receiver.tokens).size], [3, 1])
  assert.equal(await finish(run, running), 0)
  assert.deepEqual(receiver.got, ['a0'])
})

test('while the receiver is away the end waits for a bounded time and says what is left; the next start delivers it', async () => {
  const run = await setUp()
  const receiver = new Receiver()
  receiver.isAway = true
  await write(run.log, 'a', 0, ['a0', 'a1'])
  await write(run.log, 'b', 0, ['b0'])
  const running = start(run, receiver)
  const sinceMs = run.clock.monotonicMs()
  assert.equal(await finish(run, running), 3)
  assert.ok(run.clock.monotonicMs() - sinceMs < 10_000)
  receiver.isAway = false
  assert.equal(await finish(run, start(run, receiver)), 0)
  assert.deepEqual([...receiver.got].sort(), ['a0', 'a1', 'b0'])
})

test('what is refused, or cannot be read, goes to the dead letters with the position, once; the others arrive', async () => {
  const run = await setUp()
  const receiver = new Receiver()
  receiver.refused.add('bad')
  await write(run.log, 'a', 1, ['a0', 'bad', 'unreadable', 'a1'])
  const running = start(run, receiver)
  assert.equal(await finish(run, running), 0)
  assert.deepEqual(receiver.got, ['a0', 'a1'])
  const letters = [...run.log.records('dead', 1)]
  assert.deepEqual(letters.map((l) => Buffer.from(l.value!).toString()).sort(), ['bad', 'unreadable'])
  const offsets = letters.map((l) => l.headers.find(([name]) => name === '__streams.errors.offset')![1].toString())
  assert.deepEqual(offsets.sort(), ['1', '2'])
  assert.equal(running.events.filter((e) => e.kind === 'dead-letter').length, 2)
  assert.equal(await finish(run, start(run, receiver)), 0)
  assert.equal([...run.log.records('dead', 1)].length, 2)
})

test('a receiver of another generation gets all of the log again, under other tokens', async () => {
  const run = await setUp()
  const receiver = new Receiver()
  await write(run.log, 'a', 0, ['a0', 'a1'])
  assert.equal(await finish(run, start(run, receiver)), 0)
  const fresh = new Receiver()
  fresh.generation = 'g2'
  assert.equal(await finish(run, start(run, fresh)), 0)
  assert.deepEqual(fresh.got, ['a0', 'a1'])
  assert.deepEqual(fresh.known, [['g1']])
  assert.notEqual(fresh.tokens[0], receiver.tokens[0])
})

test('batches are bounded in records and bytes', async () => {
  const run = await setUp()
  const receiver = new Receiver()
  await write(
    run.log,
    'a',
    0,
    Array.from({ length: 10 }, (_, i) => `${i}`),
  )
  await write(run.log, 'b', 0, ['x'.repeat(500), 'y'.repeat(500), 'z'])
  assert.equal(await finish(run, start(run, receiver, { maxRecords: 4, maxBytes: 400 })), 0)
  const ranges = (topic: number) =>
    receiver.tokens.filter((t) => t.includes(`-${'ab'[topic]}:`)).map((t) => t.slice(t.lastIndexOf(':') + 1))
  assert.deepEqual(ranges(0), ['0-4', '4-8', '8-10'])
  assert.deepEqual(ranges(1), ['0-1', '1-2', '2-3'])
  assert.equal(receiver.got.length, 13)
})

test('a plan that is not committed is not delivered; a fenced runner joins again', async () => {
  for (const kind of ['aborted', 'fenced'] as const) {
    const run = await setUp()
    const receiver = new Receiver()
    await write(run.log, 'a', 0, ['a0'])
    run.log.failNextCommit(kind)
    const running = start(run, receiver)
    await until(run.clock, () => receiver.got.length > 0)
    assert.equal(await finish(run, running), 0)
    assert.deepEqual(receiver.got, ['a0'])
    assert.equal(receiver.tokens.length, 1)
  }
})

test('the metadata of a position says its generation, and the planned end', () => {
  assert.deepEqual(readPlan(writePlan('m1x', 12)), { generation: 'm1x', end: 12 })
  assert.deepEqual(readPlan(writePlan('m1x', undefined)), { generation: 'm1x', end: undefined })
  for (const meta of [undefined, '', 'not ours: 3', 'a to b'])
    assert.deepEqual(readPlan(meta), { generation: undefined, end: undefined })
})
