import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createCoordinator } from '../../../connectors/log/coordinator.ts'
import type { Assignment, Assignor, Member } from '../../../connectors/log/types.ts'

const tasks = Array.from({ length: 6 }, (_, n) => `0_${n}`)
const deal: Assignor = (members) =>
  new Map(members.map((member, place) => [member, tasks.filter((_, n) => n % members.length === place)]))

function open() {
  const kept: [string, number][] = []
  const coordinator = createCoordinator({
    lastGeneration: () => 0,
    keepGeneration(group, generation) {
      kept.push([group, generation])
      return undefined
    },
  })
  return { coordinator, kept }
}

test('every join and leave is a generation, kept in order', () => {
  const { coordinator, kept } = open()
  const one = coordinator.join('g', 'one', deal)
  const two = coordinator.join('g', 'two', deal)
  two.leave('stop')
  one.leave('stop')
  assert.deepEqual(kept, [
    ['g', 1],
    ['g', 2],
    ['g', 3],
    ['g', 4],
  ])
})

test('members are told of a generation only when it is kept; if it cannot be, they hear why', async () => {
  let keep: { resolve: () => void; reject: (error: Error) => void } | undefined
  const coordinator = createCoordinator({
    lastGeneration: () => 41,
    keepGeneration: () => new Promise((resolve, reject) => (keep = { resolve, reject })),
  })
  const member = coordinator.join('g', 'one', deal)
  let told: Assignment | undefined
  const first = Promise.resolve(member.next([])).then((assignment) => (told = assignment))
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(told, undefined)
  keep!.resolve()
  assert.equal((await first).epoch.generation, 42)
  const second = coordinator.join('g', 'two', deal).next([])
  keep!.reject(new Error('disk'))
  await assert.rejects(async () => await second, /disk/)
})

test('two calls of next at a time are refused', async () => {
  const { coordinator } = open()
  const member = coordinator.join('g', 'one', deal)
  await member.next([])
  const waiting = member.next([])
  await assert.rejects(async () => await member.next([]), /waits already/)
  coordinator.close()
  assert.deepEqual((await waiting).owned, [])
})

/** A member as a runtime would drive it, one step at a time. */
type Driver = {
  readonly instance: string
  readonly member: Member
  readonly runs: Set<string>
  epoch: Assignment['epoch']
  /** Revoked and not closed yet. */
  closing: string[]
  isWaiting: boolean
}

test('no task ever runs twice, and all run when the group is quiet', async () => {
  const actionArb = fc.record({
    instance: fc.constantFrom('a', 'b', 'c', 'd'),
    what: fc.constantFrom('join', 'leave', 'evict', 'step', 'step', 'step'),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(actionArb, { maxLength: 40 }), async (actions) => {
      const { coordinator } = open()
      const drivers = new Map<string, Driver>()

      const onlyOnce = () => {
        const valid = [...drivers.values()].filter((driver) => coordinator.isCurrent('g', driver.epoch))
        const running = valid.flatMap((driver) => [...driver.runs])
        assert.equal(new Set(running).size, running.length, `${running}`)
      }
      const step = async (driver: Driver) => {
        if (driver.isWaiting) return
        for (const task of driver.closing) driver.runs.delete(task)
        driver.isWaiting = true
        const told = driver.member.next(driver.closing)
        driver.closing = []
        const take = (assignment: Assignment) => {
          driver.isWaiting = false
          driver.epoch = assignment.epoch
          for (const task of assignment.lost) driver.runs.delete(task)
          for (const task of assignment.owned) driver.runs.add(task)
          driver.closing = [...assignment.revoke]
        }
        if (told instanceof Promise) told.then(take, () => {})
        else take(told)
        await new Promise((resolve) => setImmediate(resolve))
      }

      for (const { instance, what } of actions) {
        const driver = drivers.get(instance)
        if (what === 'join' && driver === undefined) {
          const member = coordinator.join('g', instance, deal)
          const epoch = { memberId: '', generation: -2 }
          drivers.set(instance, { instance, member, runs: new Set(), epoch, closing: [], isWaiting: false })
        } else if (what === 'leave' && driver !== undefined) {
          drivers.delete(instance)
          await driver.member.leave('stop')
        } else if (what === 'evict' && driver !== undefined && isIn(coordinator, instance)) {
          coordinator.evict('g', instance)
        } else if (driver !== undefined) {
          await step(driver)
        }
        onlyOnce()
      }
      for (let round = 0; round < 12; round++) {
        for (const driver of drivers.values()) await step(driver)
        await new Promise((resolve) => setImmediate(resolve))
        onlyOnce()
      }
      if (drivers.size === 0) return
      const running = [...drivers.values()].flatMap((driver) => [...driver.runs])
      assert.deepEqual(running.sort(), tasks)
      for (const driver of drivers.values()) assert.ok(coordinator.isCurrent('g', driver.epoch))
    }),
    { numRuns: 100, verbose: 1 },
  )
})

function isIn(coordinator: ReturnType<typeof createCoordinator>, instance: string): boolean {
  return coordinator.instances('g').includes(instance)
}
