/**
 * The group coordinator of the logs that live in one process: who is a member, in which generation, and who runs which
 * task. Cooperative (KIP-429): a task that moves is first revoked from its holder; the new one gets it when the holder
 * has named it in `next(closed)`.
 */
import { LogError } from './errors.ts'
import type { Assignment, Assignor, Epoch, MaybePromise, Member, TaskId } from './types.ts'

export interface CoordinatorOptions {
  /** The last generation of a group that was ever used; 0 if none. */
  lastGeneration(group: string): number
  /** Keeps a new generation. Members are told of it when this has resolved. */
  keepGeneration(group: string, generation: number): undefined | Promise<void>
}

export interface Coordinator {
  /** An `instanceId` that is a member already is replaced: the earlier holder loses everything. */
  join(group: string, instanceId: string, assign: Assignor): Member
  /**
   * Whether a commit under this epoch counts. A member's older generation does until the member has taken note of the
   * newer one by its next `next`, because none of its tasks can have moved before. `{memberId: '', generation: -1}`
   * is a tool's epoch: it counts while the group has no members.
   */
  isCurrent(group: string, epoch: Epoch): boolean
  /** As if the member had been silent too long: it is told what it lost and joins again by its next `next`. */
  evict(group: string, instanceId: string): void
  /** The instances that are members, in order of joining. */
  instances(group: string): readonly string[]
  /** Whoever waits is told that it owns nothing. */
  close(): void
}

type MemberState = {
  readonly instanceId: string
  memberId: string
  status: 'member' | 'evicted' | 'replaced' | 'left'
  /** Handed out to it and not named as closed yet. */
  readonly holds: Set<TaskId>
  told: Assignment
  /** Commits of older generations no longer count. */
  acknowledged: number
  waiting: ((assignment: MaybePromise<Assignment>) => void) | undefined
  /** It has been told that it is out. */
  goneTold: boolean
}

type Group = {
  readonly name: string
  generation: number
  members: MemberState[]
  assign: Assignor
  target: ReadonlyMap<string, readonly TaskId[]>
  kept: undefined | Promise<void>
}

export function createCoordinator(options: CoordinatorOptions): Coordinator {
  const groups = new Map<string, Group>()
  let closed = false

  function groupOf(name: string, assign: Assignor): Group {
    let group = groups.get(name)
    if (group === undefined) {
      const generation = options.lastGeneration(name)
      group = { name, generation, members: [], assign, target: new Map(), kept: undefined }
      groups.set(name, group)
    }
    return group
  }

  function rebalance(group: Group): void {
    const instances = group.members.map((member) => member.instanceId)
    group.target = instances.length === 0 ? new Map() : group.assign(instances)
    group.kept = options.keepGeneration(group.name, group.generation)
    // A failure reaches those who wait; without any it must not end the process as an unhandled rejection.
    group.kept?.catch(() => {})
    for (const member of group.members) offer(group, member)
  }

  function enter(group: Group, member: MemberState): void {
    group.generation++
    member.memberId = `${member.instanceId}-${group.generation}`
    member.status = 'member'
    member.goneTold = false
    member.acknowledged = group.generation
    member.told = nothing({ memberId: member.memberId, generation: -1 })
    group.members.push(member)
    rebalance(group)
  }

  function remove(group: Group, member: MemberState, status: 'evicted' | 'replaced' | 'left'): void {
    if (member.status === 'member') {
      group.members = group.members.filter((other) => other !== member)
      group.generation++
      member.status = status
      if (status !== 'replaced') rebalance(group)
    }
    member.status = status
    if (member.waiting !== undefined) answer(member, gone(member))
  }

  function refuseNext(group: Group, member: MemberState): Error | undefined {
    const doing = `waiting for an assignment of ${member.instanceId} in group ${group.name}`
    if (closed) return new LogError('closed', `${doing}: the log is closed`)
    if (member.waiting !== undefined) return new Error(`${doing}: it waits already`)
    if (member.status === 'left') return new LogError('closed', `${doing}: it left`)
    if (member.status === 'replaced' && member.goneTold) return new LogError('closed', `${doing}: it was replaced`)
    return undefined
  }

  return {
    join(name, instanceId, assign) {
      if (closed) throw new LogError('closed', `joining group ${name}: the log is closed`)
      const group = groupOf(name, assign)
      group.assign = assign
      const earlier = group.members.find((member) => member.instanceId === instanceId)
      if (earlier !== undefined) remove(group, earlier, 'replaced')
      const member: MemberState = {
        instanceId,
        memberId: '',
        status: 'member',
        holds: new Set(),
        told: nothing({ memberId: '', generation: -1 }),
        acknowledged: 0,
        waiting: undefined,
        goneTold: false,
      }
      enter(group, member)
      return {
        next(closedTasks) {
          const refusal = refuseNext(group, member)
          if (refusal !== undefined) return Promise.reject(refusal)
          for (const task of closedTasks) member.holds.delete(task)
          if (member.status === 'evicted' && member.goneTold) enter(group, member)
          if (member.status !== 'member') return gone(member)
          if (member.told.epoch.generation >= 0) member.acknowledged = member.told.epoch.generation
          for (const other of group.members) offer(group, other)
          return (
            news(group, member) ??
            new Promise((resolve) => {
              member.waiting = resolve
            })
          )
        },
        leave() {
          remove(group, member, 'left')
        },
      }
    },
    isCurrent(name, epoch) {
      const group = groups.get(name)
      if (group === undefined || group.members.length === 0) return epoch.memberId === '' && epoch.generation === -1
      const member = group.members.find((one) => one.memberId === epoch.memberId)
      if (member === undefined) return false
      return epoch.generation >= member.acknowledged && epoch.generation <= member.told.epoch.generation
    },
    evict(name, instanceId) {
      const group = groups.get(name)
      const member = group?.members.find((one) => one.instanceId === instanceId)
      if (group === undefined || member === undefined) throw new Error(`evicting ${instanceId}: no member of ${name}`)
      remove(group, member, 'evicted')
    },
    instances: (name) => groups.get(name)?.members.map((member) => member.instanceId) ?? [],
    close() {
      closed = true
      for (const group of groups.values()) {
        for (const member of group.members) {
          answer(member, nothing(member.told.epoch))
        }
      }
    },
  }
}

/** Answers a waiting `next` if there is anything new to tell. */
function offer(group: Group, member: MemberState): void {
  if (member.waiting === undefined) return
  const assignment = news(group, member)
  if (assignment !== undefined) answer(member, assignment)
}

function answer(member: MemberState, assignment: MaybePromise<Assignment>): void {
  const resolve = member.waiting
  member.waiting = undefined
  resolve?.(assignment)
}

/** What a member has not been told yet; what is owned is its own from now on. */
function news(group: Group, member: MemberState): MaybePromise<Assignment> | undefined {
  const target = group.target.get(member.instanceId) ?? []
  const held = new Set<TaskId>()
  for (const other of group.members) if (other !== member) for (const task of other.holds) held.add(task)
  const owned = target.filter((task) => !held.has(task))
  const revoke = [...member.holds].filter((task) => !target.includes(task))
  const told = member.told
  const isNew =
    told.epoch.generation !== group.generation ||
    !sameTasks(told.owned, owned) ||
    !revoke.every((task) => told.revoke.includes(task))
  if (!isNew) return undefined
  for (const task of owned) member.holds.add(task)
  const epoch = { memberId: member.memberId, generation: group.generation }
  const assignment: Assignment = { epoch, owned, revoke, lost: [] }
  member.told = assignment
  return group.kept === undefined ? assignment : group.kept.then(() => assignment)
}

/** A member that is out learns what it lost. */
function gone(member: MemberState): Assignment {
  const lost = member.status === 'left' ? [] : [...member.holds]
  member.holds.clear()
  member.goneTold = true
  return { epoch: member.told.epoch, owned: [], revoke: [], lost }
}

function nothing(epoch: Epoch): Assignment {
  return { epoch, owned: [], revoke: [], lost: [] }
}

function sameTasks(a: readonly TaskId[], b: readonly TaskId[]): boolean {
  return a.length === b.length && a.every((task) => b.includes(task))
}
