/** The conformance suite must be red on a log that breaks a promise: each mutant breaks one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSystemClock } from '../../../connectors/clock/system.ts'
import { createMemoryLog } from '../../../connectors/log/memory.ts'
import type { Assignment, Batch, Lane, Log, MaybePromise, Member, Unit } from '../../../connectors/log/types.ts'
import { type LogHarness, toolEpoch } from '../../suites/log/harness.ts'
import { durableLogChecks, type LogCheck, logChecks, runCheck } from '../../suites/log.ts'
import { embeddedHarness } from './embedded-harness.ts'

type Mutation = {
  readonly log?: (log: Log) => Partial<Log>
  readonly lane?: (lane: Lane) => Partial<Lane>
  readonly unit?: (unit: Unit) => Partial<Unit>
}

/** The name says which promise is broken; `caughtBy` are the checks that must reject. */
const mutants: Readonly<Record<string, { readonly mutation: Mutation; readonly caughtBy: readonly string[] }>> = {
  'epochs are not checked': {
    mutation: {
      unit: (unit) => ({
        commit: (groups) => unit.commit(groups.map((one) => ({ ...one, group: `-${one.group}`, epoch: toolEpoch }))),
      }),
      log: (log) => ({ positions: (group, ps) => log.positions(`-${group}`, ps) }),
    },
    caughtBy: [
      'a commit in an epoch that is over changes nothing',
      'one stale group of several refuses the whole commit',
    ],
  },
  'producers are not fenced': {
    mutation: { log: (log) => ({ lane: unfencedLane(log) }) },
    caughtBy: ['a lane opened again fences its earlier holder'],
  },
  'aborted records are visible': {
    mutation: { unit: (unit) => ({ abort: async () => void (await unit.commit([])) }) },
    caughtBy: ['an aborted unit leaves nothing that is read'],
  },
  'an atomic unit is visible flush by flush': {
    mutation: { lane: (lane) => ({ begin: () => lane.begin('idempotent') }) },
    caughtBy: ['an atomic unit is visible at its commit, in all partitions, and not before'],
  },
  'a flush makes nothing visible': {
    mutation: { unit: () => ({ flush: () => undefined }) },
    caughtBy: ['an idempotent unit is visible flush by flush'],
  },
  'positions are not committed': {
    mutation: { unit: (unit) => ({ commit: () => unit.commit([]) }) },
    caughtBy: ['positions of several groups, with metadata, are committed together with the records'],
  },
  'metadata of positions are forgotten': {
    mutation: {
      unit: (unit) => ({
        commit: (groups) =>
          unit.commit(
            groups.map((one) => ({
              ...one,
              offsets: new Map([...one.offsets].map(([input, { next }]) => [input, { next }])),
            })),
          ),
      }),
    },
    caughtBy: ['positions of several groups, with metadata, are committed together with the records'],
  },
  'pausing does nothing': {
    mutation: { lane: () => ({ pause: () => {} }) },
    caughtBy: ['a paused input is not read and goes on where it was'],
  },
  'polls have no budget': {
    mutation: { lane: (lane) => ({ poll: (_maxBytes, maxWaitMs) => lane.poll(Number.POSITIVE_INFINITY, maxWaitMs) }) },
    caughtBy: ['a poll keeps to its bytes but for one record, and loses nothing'],
  },
  'polls do not wait': {
    mutation: { lane: (lane) => ({ poll: async (maxBytes) => lane.poll(maxBytes, 0) }) },
    caughtBy: ['a poll answers at once with what is there, and waits for what is not'],
  },
  'views are overwritten by a commit': {
    mutation: { lane: scribblingLane },
    caughtBy: ['the views of a poll stay as they are until the next one'],
  },
  'topics are not verified': {
    mutation: {
      log: (log) => ({ ensure: async (specs) => Promise.resolve(log.ensure(specs)).catch(() => []) }),
    },
    caughtBy: ['topics are made once and verified'],
  },
  'positions out of range read as nothing': {
    mutation: { log: (log) => ({ read: async (...args) => Promise.resolve(log.read(...args)).catch(() => null) }) },
    caughtBy: ['a position that the log does not reach is refused'],
  },
  'a task is given before it is closed': {
    mutation: { log: (log) => ({ join: async (...args) => hastyMember(await log.join(...args)) }) },
    caughtBy: ['a task that moves is revoked first and given when it is closed'],
  },
  'the order of appends is lost': {
    mutation: { unit: reversingUnit },
    caughtBy: ['records of a partition keep the order of appending, with ascending offsets'],
  },
}

for (const [name, { mutation, caughtBy }] of Object.entries(mutants)) {
  test(`mutant: ${name}`, async () => {
    for (const check of caughtBy) {
      await assert.rejects(runCheck(checkNamed(check), mutantHarness(mutation)), { code: 'ERR_ASSERTION' }, check)
    }
  })
}

test('a wrapped log that breaks nothing passes', async () => {
  for (const check of Object.values(logChecks)) await runCheck(check, mutantHarness({}))
})

test('mutant: the last commit is lost in a crash', async () => {
  for (const [name, check] of Object.entries(durableLogChecks)) {
    const harness = embeddedHarness()
    const lossy = { ...harness, reopen: () => harness.reopen((bytes) => bytes.subarray(0, bytes.length - 1)) }
    await assert.rejects(runCheck(check, lossy), { code: 'ERR_ASSERTION' }, name)
  }
})

function checkNamed(name: string): LogCheck {
  const check = logChecks[name]
  if (check === undefined) throw new Error(`there is no check ${name}`)
  return check
}

function mutantHarness({ log: mutateLog, lane: mutateLane, unit: mutateUnit }: Mutation): LogHarness {
  const inner = createMemoryLog({ clock: createSystemClock() })

  function mutatedLane(lane: Lane): Lane {
    const mutated: Lane = {
      ...lane,
      begin(mode) {
        const unit = lane.begin(mode)
        return { ...unit, ...mutateUnit?.(unit) }
      },
    }
    return { ...mutated, ...mutateLane?.(mutated) }
  }

  return {
    async open() {
      const changes: Partial<Log> = { ...mutateLog?.(inner) }
      const lane = changes.lane ?? inner.lane
      return { ...inner, ...changes, lane: async (id) => mutatedLane(await lane(id)) }
    },
    async close() {
      await inner.close()
    },
  }
}

function unfencedLane(log: Log): Log['lane'] {
  let count = 0
  return (id) => log.lane(`${id}-${count++}`)
}

/** What was polled is overwritten as soon as anything is committed. */
function scribblingLane(lane: Lane): Partial<Lane> {
  let polled: readonly Batch[] = []
  return {
    poll(maxBytes, maxWaitMs) {
      const batches = lane.poll(maxBytes, maxWaitMs)
      if (!(batches instanceof Promise)) polled = batches
      return batches
    },
    begin(mode) {
      const unit = lane.begin(mode)
      return {
        ...unit,
        commit(groups) {
          for (const batch of polled) for (let i = 0; i < batch.count; i++) batch.value(i)?.fill(0)
          return unit.commit(groups)
        },
      }
    },
  }
}

/** Says that revoked tasks are closed before its caller can have closed them. */
function hastyMember(member: Member): Member {
  let early: MaybePromise<Assignment> | undefined
  return {
    ...member,
    async next(closed) {
      const assignment = await (early ?? member.next(closed))
      early = assignment.revoke.length > 0 ? member.next(assignment.revoke) : undefined
      return assignment
    },
  }
}

function reversingUnit(unit: Unit): Partial<Unit> {
  const appends: Parameters<Unit['append']>[] = []
  return {
    append(to, records) {
      const bytes = Buffer.from(records.bytes())
      appends.push([to, { count: records.count, byteLength: bytes.length, bytes: () => bytes }])
    },
    commit(groups) {
      for (const args of appends.splice(0).reverse()) unit.append(...args)
      return unit.commit(groups)
    },
  }
}
