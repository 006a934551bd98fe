import type { TaskId } from '../../connectors/log/types.ts'
import { type ReadOnlyKeyValueStore, readOnlyStore } from './store.ts'
import type { Task } from './task.ts'
import type { StreamThread } from './thread.ts'
import type { ProcessingGuarantee } from './types.ts'

export interface InputStatus {
  readonly topic: string
  readonly partition: number
  /** Next offset to process. */
  readonly next: number
  readonly committed: number | undefined
  readonly end: number
  readonly lag: number
}
export interface TaskStatus {
  readonly taskId: TaskId
  readonly partition: number
  readonly status: Task['status']
  readonly inputs: readonly InputStatus[]
  /** Over all inputs. */
  readonly lag: number
  /** Async work taken and not done. */
  readonly inFlight: number
  readonly stores: readonly string[]
}
export interface ApplicationStatus {
  readonly applicationId: string
  readonly guarantee: ProcessingGuarantee
  readonly tasks: readonly TaskStatus[]
}

export function statusOf(thread: StreamThread): ApplicationStatus[] {
  return thread.manager.applications.map(({ options, tasks }) => ({
    applicationId: options.applicationId,
    guarantee: options.guarantee,
    tasks: tasks.map((task) => {
      const inputs = task.options.inputs.map(({ input, next, committed }): InputStatus => {
        const end = thread.ends(input).stable
        return { topic: input.topic, partition: input.partition, next, committed, end, lag: Math.max(0, end - next) }
      })
      return {
        taskId: task.options.id,
        partition: task.options.partition,
        status: task.status,
        inputs,
        lag: inputs.reduce((sum, i) => sum + i.lag, 0),
        inFlight: task.life.inFlight,
        stores: task.options.stores.map((s) => s.name),
      }
    }),
  }))
}

/** The committed view of a store; undefined if no task here has it. */
export function committedStore<K, V>(
  thread: StreamThread,
  applicationId: string,
  partition: number,
  store: string,
): ReadOnlyKeyValueStore<K, V> | undefined {
  const application = thread.manager.applications.find((a) => a.options.applicationId === applicationId)
  for (const task of application?.tasks ?? []) {
    const { subTopology, taskStore } = task.options
    if (task.options.partition !== partition || taskStore === undefined) continue
    const builder = subTopology.stores.find((s) => s.name === store)
    if (builder !== undefined) return readOnlyStore(builder, taskStore) as unknown as ReadOnlyKeyValueStore<K, V>
  }
  return undefined
}
