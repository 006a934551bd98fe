import type { Clock } from '../../clock/types.ts'
import { type Coordinator, createCoordinator } from '../coordinator.ts'
import { LogError } from '../errors.ts'
import type { GroupOffsets, Log, MaybePromise, Outcome, Partition, TopicInfo, TopicSpec } from '../types.ts'
import type { Handles } from './handles.ts'
import { createLane, type LocalLane, laneClosed } from './lane.ts'
import { createReader } from './reader.ts'
import type { Contents, PartitionLog, PendingBatch, Position, Storage } from './storage.ts'

export interface LocalLogOptions {
  readonly clock: Clock
  readonly handles: Handles
  readonly storage: Storage
  readonly contents: Contents
}

export interface LocalLog extends Log {
  readonly coordinator: Coordinator
  /** The next commit has this outcome and changes nothing. */
  planFailure(outcome: Outcome): void
  /** Throws LogError `topic-unknown`. */
  resolve(p: Partition, doing: string): PartitionLog
}

/**
 * A log whose lanes are all in this process: memory and the journal differ in their storage alone. What is written
 * becomes visible when the storage says that it is kept, in the order of writing.
 */
export function createLocalLog({ clock, handles, storage, contents }: LocalLogOptions): LocalLog {
  const { topics, positions, generations } = contents
  /** Who holds an id; a lane that lost its id is still open. */
  const holders = new Map<string, LocalLane>()
  const lanes = new Set<LocalLane>()
  let planned: Outcome | undefined
  let isClosed = false
  const coordinator = createCoordinator({
    lastGeneration: (group) => generations.get(group) ?? 0,
    keepGeneration(group, generation) {
      generations.set(group, generation)
      return storage.keepGeneration(group, generation)
    },
  })

  function check(doing: string): void {
    if (isClosed) throw new LogError('closed', `${doing}: the log is closed`)
  }

  function resolve(p: Partition, doing: string): PartitionLog {
    const found = topics.get(p.topic)?.partitions[p.partition]
    if (found === undefined) {
      throw new LogError('topic-unknown', `${doing}: there is no partition ${p.partition} of topic ${p.topic}`)
    }
    return found
  }

  function refusal(groups: readonly GroupOffsets[]): Outcome | undefined {
    for (const { group, epoch } of groups) {
      if (!coordinator.isCurrent(group, epoch)) return { kind: 'fenced', by: 'epoch' }
    }
    return undefined
  }

  function keep(
    buffer: Buffer,
    batches: readonly PendingBatch[],
    groups: readonly GroupOffsets[],
  ): undefined | Promise<void> {
    if (batches.length === 0 && groups.length === 0) return undefined
    const saved = storage.write(buffer, batches, groups)
    if (saved === undefined) {
      publish(batches, groups)
      return undefined
    }
    // The caller may hand over the next batches before these are durable: their ends are of this moment.
    const ends = batches.map(({ to }) => to.end)
    return saved.then(() => publish(batches, groups, ends))
  }

  function publish(batches: readonly PendingBatch[], groups: readonly GroupOffsets[], ends?: readonly number[]): void {
    for (let i = 0; i < batches.length; i++) {
      const { to } = batches[i]!
      to.stable = ends === undefined ? to.end : ends[i]!
    }
    for (const { group, offsets } of groups) {
      let known = positions.get(group)
      if (known === undefined) positions.set(group, (known = new Map()))
      for (const [input, position] of offsets) known.set(handles.partition(input.topic, input.partition), position)
    }
    if (batches.length === 0) return
    const changed = batches.map(({ to }) => to)
    for (const lane of lanes) lane.wake(changed)
  }

  function ensureOne(spec: TopicSpec): TopicInfo {
    const known = topics.get(spec.name)
    if (known === undefined) {
      const topic = storage.createTopic(spec)
      topics.set(spec.name, topic)
      return topic.info
    }
    if (known.spec.partitions !== spec.partitions || known.spec.cleanup !== spec.cleanup) {
      throw new LogError(
        'topic-mismatch',
        `ensuring topic ${spec.name}: wanted are ${spec.partitions} partitions and cleanup ${spec.cleanup}, it has ${known.spec.partitions} and ${known.spec.cleanup}`,
      )
    }
    known.spec = spec
    return known.info
  }

  function openLane(id: string): MaybePromise<LocalLane> {
    check(`opening lane ${id}`)
    const lane: LocalLane = createLane(id, {
      clock,
      check(doing) {
        check(doing)
        if (lane.isClosed()) throw laneClosed(id, doing)
      },
      resolve,
      refusal(groups) {
        if (isClosed) return { kind: 'fatal', error: new LogError('closed', 'committing: the log is closed') }
        if (holders.get(id) !== lane) {
          if (lane.isClosed()) return { kind: 'fatal', error: laneClosed(id, 'committing') }
          return { kind: 'fenced', by: 'producer' }
        }
        return refusal(groups)
      },
      keep,
      plannedFailure() {
        const outcome = planned
        planned = undefined
        return outcome
      },
      closed() {
        lanes.delete(lane)
        if (holders.get(id) === lane) holders.delete(id)
      },
    })
    holders.set(id, lane)
    lanes.add(lane)
    // What the earlier holder wrote is decided before the new one reads positions.
    return after(storage.settled(), () => lane)
  }

  return {
    coordinator,
    planFailure(outcome) {
      planned = outcome
    },
    resolve,
    ensure: (specs) =>
      answer(() => {
        check('ensuring topics')
        const infos = specs.map(ensureOne)
        return after(storage.settled(), () => infos)
      }),
    partition: handles.partition,
    input: handles.input,
    join: (group, instanceId, assign) =>
      answer(() => {
        check(`joining group ${group}`)
        return coordinator.join(group, instanceId, assign)
      }),
    lane: (id) => answer(() => openLane(id)),
    read: (p, from, maxBytes, isolation) =>
      answer(() => {
        check('reading')
        const log = resolve(p, 'reading')
        const settled = isolation === 'high' && from >= log.stable ? storage.settled() : undefined
        return after(settled, () => {
          const reader = createReader(log, handles.input('', p.topic, p.partition), from)
          return reader.next(maxBytes, true) ?? null
        })
      }),
    ends: (p) =>
      answer(() => {
        const log = resolve(p, 'asking for the end')
        return { stable: log.stable, high: log.end, atMs: clock.nowMs() }
      }),
    positions: (group, ps) =>
      answer(() => {
        check(`reading positions of group ${group}`)
        return after(storage.settled(), () => {
          const known = positions.get(group)
          const found = new Map<Partition, Position>()
          for (const p of ps) {
            const position = known?.get(handles.partition(p.topic, p.partition))
            if (position !== undefined) found.set(p, position)
          }
          return found
        })
      }),
    close() {
      if (isClosed) return undefined
      coordinator.close()
      for (const lane of lanes) lane.close()
      isClosed = true
      return storage.close()
    },
  }
}

/** At once where nothing has to be waited for; a refusal is always a rejection. */
function answer<T>(ask: () => MaybePromise<T>): MaybePromise<T> {
  try {
    return ask()
  } catch (error) {
    return Promise.reject(error)
  }
}

function after<T>(settled: undefined | Promise<void>, then: () => T): MaybePromise<T> {
  return settled === undefined ? then() : settled.then(then)
}
