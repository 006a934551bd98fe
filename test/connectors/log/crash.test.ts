import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { createVirtualClock } from '../../../connectors/clock/virtual.ts'
import { openEmbeddedLog } from '../../../connectors/log/embedded/open.ts'
import type { Log, Outcome } from '../../../connectors/log/types.ts'
import { append, drain, offsets, openTopics, toolEpoch, valuesOf } from '../../suites/log/harness.ts'
import { embeddedHarness, unsafeIo } from './embedded-harness.ts'

test('P1: a process killed between write and sync, again and again, loses nothing that it acknowledged', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'weir-crash-'))
  try {
    let acknowledged = 0
    for (const frames of [3, 0, 5]) {
      const child = spawnSync(process.execPath, [join(import.meta.dirname, 'crash-child.ts'), dir, String(frames)])
      assert.equal(child.signal, 'SIGKILL', child.stderr.toString())
      const lines = child.stdout.toString().trim().split('\n').filter(Boolean)
      if (lines.length > 0) acknowledged = Number(lines.at(-1)) + 1
      const log = await openEmbeddedLog({ dir, clock: createVirtualClock(0) })
      const values = await valuesOf(log, log.partition('a', 0))
      assert.deepEqual(
        values,
        values.map((_, i) => String(i)),
      )
      assert.ok(values.length >= acknowledged && values.length <= acknowledged + 1, `${values.length} ${acknowledged}`)
      await log.close()
      acknowledged = values.length
    }
    assert.ok(acknowledged >= 7)
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
})

/** One unit: what it appends to which partition, and up to where the group has read after it. */
type Commit = {
  readonly appends: readonly (readonly [partition: number, values: readonly string[]])[]
  readonly next: number
}
type Step =
  | { readonly do: 'commit' | 'start' | 'abort'; readonly mode: 'atomic' | 'idempotent'; readonly commit: Commit }
  | { readonly do: 'crash'; readonly keep: number; readonly flip: number | undefined }
  | { readonly do: 'restart' }
type State = { readonly values: readonly (readonly string[])[]; readonly next: number | undefined }

const commitArb: fc.Arbitrary<Commit> = fc.record({
  appends: fc.array(fc.tuple(fc.nat(2), fc.array(fc.string({ maxLength: 30 }), { minLength: 1, maxLength: 4 })), {
    maxLength: 4,
  }),
  next: fc.nat(1000),
})
const unitArb = (what: 'commit' | 'start' | 'abort') =>
  fc.record({
    do: fc.constant(what),
    mode: fc.constantFrom('atomic' as const, 'idempotent' as const),
    commit: commitArb,
  })
const stepArb: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: unitArb('commit') },
  { weight: 4, arbitrary: unitArb('start') },
  { weight: 1, arbitrary: unitArb('abort') },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('crash' as const),
      keep: fc.double({ min: 0, max: 1, noNaN: true }),
      flip: fc.option(fc.nat(), { nil: undefined }),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ do: 'restart' as const }) },
)

test('whatever happens, a reopened log is what was acknowledged and a beginning of what was under way', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(stepArb, { maxLength: 25 }), fc.constantFrom(700, 5000, 1 << 20), runAgainstModel),
    { numRuns: 40, verbose: 1 },
  )
})

async function runAgainstModel(steps: readonly Step[], maxFileBytes: number): Promise<void> {
  const harness = embeddedHarness({ maxFileBytes, cacheBytes: 4096, io: unsafeIo })
  try {
    let log: Log = await openTopics(harness)
    let lane = await log.lane('l')
    /** What was acknowledged, and after it one state for each commit under way. */
    let states: State[] = [{ values: [[], [], []], next: undefined }]
    let running: (Outcome | Promise<Outcome>)[] = []

    const settle = async () => {
      for (const outcome of await Promise.all(running)) assert.equal(outcome.kind, 'committed')
      running = []
      states = states.slice(-1)
    }
    for (const step of steps) {
      if (step.do === 'crash') {
        log = await harness.reopen((bytes, durable) => {
          const left = Buffer.from(bytes.subarray(0, durable + Math.round((bytes.length - durable) * step.keep)))
          if (step.flip !== undefined && left.length > durable)
            left[durable + (step.flip % (left.length - durable))]! ^= 1
          return left
        })
        const found = await stateOf(log)
        const match = states.findIndex((state) => JSON.stringify(state) === JSON.stringify(found))
        assert.ok(match >= 0, `found ${JSON.stringify(found)}, wanted one of ${JSON.stringify(states)}`)
        await Promise.all(running)
        running = []
        states = [found]
      } else if (step.do === 'restart') {
        await settle()
        await log.close()
        log = await harness.reopen((bytes) => bytes)
        assert.deepEqual(await stateOf(log), states[0])
      } else {
        const unit = lane.begin(step.mode)
        const { appends, next } = step.commit
        for (const [partition, values] of appends) append(unit, log.partition('a', partition), ...values)
        if (step.do === 'abort') {
          await unit.abort()
          continue
        }
        running.push(unit.commit([offsets('g', toolEpoch, [log.input('g', 'b', 0), next])]))
        states.push(applied(states.at(-1)!, step.commit))
        if (step.do === 'commit') await settle()
        continue
      }
      lane = await log.lane('l')
    }
    await settle()
    assert.deepEqual(await stateOf(log), states[0])
  } finally {
    await harness.close()
  }
}

function applied({ values }: State, commit: Commit): State {
  const changed = values.map((all) => [...all])
  for (const [partition, added] of commit.appends) changed[partition]!.push(...added)
  return { values: changed, next: commit.next }
}

/** By both ways of reading, which must agree. */
async function stateOf(log: Log): Promise<State> {
  const lane = await log.lane('state')
  const inputs = [0, 1, 2].map((n) => log.input('state', 'a', n))
  lane.assign(new Map(inputs.map((input) => [input, 0])))
  const polled = await drain(lane, 50)
  const values: string[][] = []
  for (const [n, input] of inputs.entries()) {
    const seen = polled.get(input) ?? []
    values.push(seen.map((record) => record.value!))
    assert.deepEqual(
      seen.map((record) => record.offset),
      seen.map((_, i) => i),
    )
    assert.deepEqual(await valuesOf(log, log.partition('a', n)), values[n])
  }
  const p = log.partition('b', 0)
  return { values, next: (await log.positions('g', [p])).get(p)?.next }
}
