import type { Assignor, TaskId, TopicSpec } from '../../connectors/log/types.ts'
import { TopologyError } from './errors.ts'
import { changelogTopic } from './store.ts'
import type { SubTopology, Topology } from './topology.ts'
import type { ProcessingGuarantee } from './types.ts'

/** A topology and how it is run. */
export interface ApplicationOptions {
  /** Group, prefix of changelog topics and name of the state directory. */
  readonly applicationId: string
  readonly topology: Topology
  /** `at_least_once` runs as `exactly_once_v2` does: with one unit for all tasks it costs nothing more. */
  readonly guarantee: ProcessingGuarantee
  /** With `ack_on_take`: work that may run at a time, of all tasks here. Default 256. */
  readonly maxInFlight?: number
  /** Where reading starts: at the committed positions (none = the log's start), or at the end as it is at the start. */
  readonly resume?: 'committed' | 'end'
}

/** A task as planned: what it reads. */
export interface TaskPlan {
  readonly id: TaskId
  readonly partition: number
  readonly partitions: number
  readonly subTopology: SubTopology
}

/** All tasks of an application. Throws TopologyError on unknown topics and on inputs with unequal partition counts. */
export function planTasks(application: ApplicationOptions, topics: ReadonlyMap<string, TopicSpec>): TaskPlan[] {
  const { applicationId, topology, guarantee } = application
  for (const name of topology.topics()) {
    if (!topics.has(name))
      throw new TopologyError(`application ${applicationId}: topic "${name}" is not in the catalogue`)
  }
  return topology.subTopologies().flatMap((subTopology) => {
    if (guarantee === 'ack_on_take' && subTopology.stores.length > 0) {
      throw new TopologyError(`application ${applicationId}: guarantee ack_on_take has no state stores`)
    }
    const inputs = subTopology.sources.flatMap((s) => s.options.topics)
    const partitions = topics.get(inputs[0]!)!.partitions
    for (const name of inputs) {
      const other = topics.get(name)!.partitions
      if (other === partitions) continue
      throw new TopologyError(
        `application ${applicationId}: topic "${inputs[0]}" has ${partitions} partitions and "${name}" has ${other}; the inputs of one sub-topology must have as many`,
      )
    }
    return Array.from({ length: partitions }, (_, partition) => ({
      id: `${subTopology.id}_${partition}`,
      partition,
      partitions,
      subTopology,
    }))
  })
}

/** Changelog topics of an application, one a store, with as many partitions as its sub-topology has tasks. */
export function changelogSpecs(
  application: ApplicationOptions,
  tasks: readonly TaskPlan[],
  maxRecordBytes: number,
): TopicSpec[] {
  const specs = new Map<string, TopicSpec>()
  for (const { subTopology, partitions } of tasks) {
    for (const store of subTopology.stores) {
      const name = changelogTopic(application.applicationId, store.name)
      specs.set(name, { name, partitions, cleanup: 'compact', maxRecordBytes })
    }
  }
  return [...specs.values()]
}

/** Round robin over the members in order of their names. */
export function roundRobin(tasks: readonly TaskPlan[]): Assignor {
  return (members) => {
    const sorted = [...members].sort()
    const assignment = new Map<string, TaskId[]>(sorted.map((member) => [member, []]))
    for (const [i, task] of tasks.entries()) assignment.get(sorted[i % sorted.length]!)?.push(task.id)
    return assignment
  }
}
