import type { Log, Partition } from '../../connectors/log/types.ts'
import type { TaskStore, Write } from '../../connectors/store/types.ts'
import { type Steps, wait } from './steps.ts'

/** One store of a task and the changelog partition that it is restored from. */
export interface Changelog {
  readonly store: string
  readonly partition: Partition
  readonly topicId: string
}

/** How a checkpoint names a changelog partition. */
export function checkpointKey(p: Partition): string {
  return `${p.topic}-${p.partition}`
}

/**
 * Brings a task's store up to the end of its changelogs: from the checkpoint on, or from the start after a wipe when a
 * checkpoint belongs to another topic. Batches are applied with their checkpoint, so a crash meanwhile costs nothing.
 * Returns the number of records applied.
 */
export function* restore(
  log: Log,
  taskStore: TaskStore,
  changelogs: readonly Changelog[],
  maxBatchBytes: number,
): Steps<number> {
  let checkpoint = new Map(taskStore.checkpoint())
  const isForeign = ({ store, partition, topicId }: Changelog): boolean => {
    const at = checkpoint.get(checkpointKey(partition))
    return at === undefined ? taskStore.count(store) > 0 : at.topicId !== topicId
  }
  if (changelogs.some(isForeign)) {
    taskStore.wipe()
    checkpoint = new Map()
  }
  let restored = 0
  for (const { store, partition, topicId } of changelogs) {
    const key = checkpointKey(partition)
    let next = checkpoint.get(key)?.next ?? 0
    if (!checkpoint.has(key)) {
      checkpoint.set(key, { topicId, next })
      taskStore.apply([], checkpoint)
    }
    for (;;) {
      const batch = yield* wait(log.read(partition, next, maxBatchBytes, 'stable'))
      if (batch === null || batch.nextOffset <= next) break
      const writes: Write[] = []
      for (let i = 0; i < batch.count; i++) {
        const recordKey = batch.key(i)
        if (recordKey !== null) writes.push([store, recordKey, batch.value(i)])
      }
      next = batch.nextOffset
      checkpoint.set(key, { topicId, next })
      taskStore.apply(writes, checkpoint)
      restored += writes.length
    }
  }
  return restored
}
