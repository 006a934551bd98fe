import type { Input, Partition } from '../types.ts'

/** Interns partitions and inputs: one object each, so that they can key a Map. */
export interface Handles {
  partition(topic: string, partition: number): Partition
  input(group: string, topic: string, partition: number): Input
}

export function createHandles(): Handles {
  const partitions = new Map<string, Partition[]>()
  const inputs = new Map<string, Map<string, Input[]>>()
  return {
    partition(topic, partition) {
      let known = partitions.get(topic)
      if (known === undefined) partitions.set(topic, (known = []))
      return (known[partition] ??= { topic, partition })
    },
    input(group, topic, partition) {
      let topics = inputs.get(group)
      if (topics === undefined) inputs.set(group, (topics = new Map()))
      let known = topics.get(topic)
      if (known === undefined) topics.set(topic, (known = []))
      return (known[partition] ??= { group, topic, partition })
    },
  }
}
