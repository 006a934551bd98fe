import assert from 'node:assert/strict'
import type { Assignment, Assignor, Member } from '../../../connectors/log/types.ts'
import type { LogCheck } from '../log.ts'
import { append, offsets, openTopics, toolEpoch, valuesOf } from './harness.ts'

const tasks = ['0_0', '0_1', '0_2', '0_3']

/** Deals the tasks out in turn; one that has a name ending in `none` gets nothing. */
const deal: Assignor = (members) => {
  const working = members.filter((member) => !member.endsWith('none'))
  return new Map(
    members.map((member) => {
      const place = working.indexOf(member)
      return [member, place < 0 ? [] : tasks.filter((_, n) => n % working.length === place)]
    }),
  )
}

export const groupChecks: Readonly<Record<string, LogCheck>> = {
  'a task that moves is revoked first and given when it is closed': async (harness) => {
    const log = await openTopics(harness)
    const one = await log.join('g', 'one', deal)
    const alone = await one.next([])
    assert.deepEqual([alone.owned, alone.revoke, alone.lost], [tasks, [], []])
    const change = one.next([])
    const two = await log.join('g', 'two', deal)
    const shrunk = await change
    assert.deepEqual(
      [[...shrunk.owned].sort(), [...shrunk.revoke].sort()],
      [
        ['0_0', '0_2'],
        ['0_1', '0_3'],
      ],
    )
    assert.ok(shrunk.epoch.generation > alone.epoch.generation)
    const given: Assignment[] = []
    const collecting = collect(two, (assignment) => {
      given.push(assignment)
      return assignment.owned.length === 2
    })
    await turns()
    assert.ok(
      given.every((assignment) => assignment.owned.length === 0),
      'nothing is owned twice',
    )
    const done = one.next(['0_1', '0_3'])
    await collecting
    assert.deepEqual([...given.at(-1)!.owned].sort(), ['0_1', '0_3'])
    await two.leave('stop')
    const all = await untilOwned(one, await done, 4)
    assert.deepEqual([...all.owned].sort(), tasks)
    await one.leave('stop')
  },

  'a member that leaves gives its tasks to the others': async (harness) => {
    const log = await openTopics(harness)
    const one = await log.join('g', 'one', deal)
    await one.next([])
    const spare = await log.join('g', 'none', deal)
    const idle = await spare.next([])
    assert.deepEqual(idle.owned, [])
    await spare.leave('scale-down')
    const two = await log.join('g', 'two', deal)
    const waiting = two.next([])
    await one.leave('stop')
    const all = await untilOwned(two, await waiting, 4)
    assert.deepEqual([...all.owned].sort(), tasks)
    await assert.rejects(async () => one.next([]), { code: 'closed' })
  },

  'a commit in an epoch that is over changes nothing': async (harness) => {
    const log = await openTopics(harness)
    const [p, input] = [log.partition('a', 0), log.input('g', 'a', 0)]
    const lane = await log.lane('l')
    const one = await log.join('g', 'one', deal)
    const old = (await one.next([])).epoch
    const commit = async (value: string, epoch: { memberId: string; generation: number }, next: number) => {
      const unit = lane.begin('atomic')
      append(unit, p, value)
      return unit.commit([offsets('g', epoch, [input, next])])
    }
    assert.equal((await commit('valid', old, 1)).kind, 'committed')
    const change = one.next([])
    await log.join('g', 'two', deal)
    const shrunk = await change
    assert.equal((await commit('revoked ones may still commit', shrunk.epoch, 2)).kind, 'committed')
    void one.next([...shrunk.revoke])
    await turns()
    const fenced = { kind: 'fenced', by: 'epoch' }
    assert.deepEqual(await commit('stale', old, 3), fenced)
    assert.deepEqual(await commit('nobody', { memberId: 'nobody', generation: shrunk.epoch.generation }, 3), fenced)
    assert.deepEqual(await commit('a tool', toolEpoch, 3), fenced)
    assert.deepEqual(await commit('future', { ...old, generation: shrunk.epoch.generation + 99 }, 3), fenced)
    assert.equal((await commit('current', shrunk.epoch, 4)).kind, 'committed')
    assert.deepEqual(await valuesOf(log, p), ['valid', 'revoked ones may still commit', 'current'])
    assert.equal((await log.positions('g', [p])).get(p)?.next, 4)
  },

  'one stale group of several refuses the whole commit': async (harness) => {
    const log = await openTopics(harness)
    const lane = await log.lane('l')
    const one = await log.join('g', 'one', deal)
    const { epoch } = await one.next([])
    await one.leave('stop')
    const unit = lane.begin('atomic')
    append(unit, log.partition('a', 0), 'x')
    const groups = [
      offsets('h', toolEpoch, [log.input('h', 'a', 0), 1]),
      offsets('g', epoch, [log.input('g', 'a', 0), 1]),
    ]
    assert.deepEqual(await unit.commit(groups), {
      kind: 'fenced',
      by: 'epoch',
    })
    assert.deepEqual(await valuesOf(log, log.partition('a', 0)), [])
    assert.equal((await log.positions('h', [log.partition('a', 0)])).size, 0)
  },

  'an instance that joins again replaces itself': async (harness) => {
    const log = await openTopics(harness)
    const lane = await log.lane('l')
    const first = await log.join('g', 'one', deal)
    const before = await first.next([])
    const waiting = first.next([])
    const second = await log.join('g', 'one', deal)
    assert.deepEqual([...(await waiting).lost].sort(), tasks)
    const after = await second.next([])
    assert.deepEqual([...after.owned].sort(), tasks)
    const zombie = lane.begin('atomic')
    append(zombie, log.partition('a', 0), 'zombie')
    const outcome = await zombie.commit([offsets('g', before.epoch, [log.input('g', 'a', 0), 1])])
    assert.deepEqual(outcome, { kind: 'fenced', by: 'epoch' })
    await assert.rejects(async () => first.next([]), { code: 'closed' })
  },

  'groups do not see each other': async (harness) => {
    const log = await openTopics(harness)
    const one = await log.join('g', 'one', deal)
    const other = await log.join('h', 'one', deal)
    assert.deepEqual((await one.next([])).owned, tasks)
    assert.deepEqual((await other.next([])).owned, tasks)
  },
}

/** Follows a member's assignments, closing what is revoked, until `enough`. */
async function collect(member: Member, enough: (assignment: Assignment) => boolean): Promise<void> {
  for (let closed: readonly string[] = []; ; ) {
    const assignment = await member.next(closed)
    if (enough(assignment)) return
    closed = assignment.revoke
  }
}

async function untilOwned(member: Member, first: Assignment | undefined, count: number): Promise<Assignment> {
  if (first !== undefined && first.owned.length === count) return first
  let last = first
  await collect(member, (assignment) => {
    last = assignment
    return assignment.owned.length === count
  })
  return last!
}

/** Lets everything happen that waits for nothing. */
async function turns(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve))
}
