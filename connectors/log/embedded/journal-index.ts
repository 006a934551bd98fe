import { xxh64Hex } from '../../../schemas/hash.ts'
import { LogError } from '../errors.ts'
import type { Handles } from '../local/handles.ts'
import type { Contents, PartitionLog, Topic } from '../local/storage.ts'
import type { Partition, TopicSpec } from '../types.ts'
import { createJournalChunks, type JournalChunks } from './chunks.ts'
import { readCommit } from './commit.ts'
import { frameHeadBytes, frameKinds } from './frame.ts'

/** What is where in the journal: all of it follows from the frames. */
export interface JournalIndex {
  readonly contents: Contents
  /** Takes in a frame found at opening. `position` is the frame's. */
  visit(kind: number, position: number, body: Buffer): void
  addTopic(spec: TopicSpec, framePosition: number): Topic
  addBatch(to: PartitionLog, count: number, position: number, length: number): void
  /** By order of creation. Throws LogError `topic-unknown`. */
  topicNumber(p: Partition): number
}

export function createJournalIndex(handles: Handles, read: (position: number, length: number) => Buffer): JournalIndex {
  const contents: Contents = { topics: new Map(), positions: new Map(), generations: new Map() }
  const topics: Topic[] = []
  const numbers = new Map<string, number>()
  const chunksOf = new Map<PartitionLog, JournalChunks>()

  function addTopic(spec: TopicSpec, framePosition: number): Topic {
    // The same journal gives the same id; a topic made anew is in another place.
    const info = {
      name: spec.name,
      partitions: spec.partitions,
      id: xxh64Hex(`${spec.name}@${framePosition}`),
    }
    const partitions: PartitionLog[] = []
    const topic: Topic = { spec, info, partitions }
    for (let n = 0; n < spec.partitions; n++) {
      const chunks = createJournalChunks(read)
      const log = { handle: handles.partition(spec.name, n), topic, chunks, stable: 0, end: 0 }
      chunksOf.set(log, chunks)
      partitions.push(log)
    }
    numbers.set(spec.name, topics.length)
    topics.push(topic)
    contents.topics.set(spec.name, topic)
    return topic
  }

  function addBatch(to: PartitionLog, count: number, position: number, length: number): void {
    chunksOf.get(to)!.add(to.end, position, length)
    to.end += count
  }

  function partitionOf(topic: number, partition: number): PartitionLog {
    const found = topics[topic]?.partitions[partition]
    if (found === undefined) throw new Error(`it names partition ${partition} of topic number ${topic}`)
    return found
  }

  function visitCommit(bodyPosition: number, body: Buffer): void {
    readCommit(body, {
      batch(topic, partition, baseOffset, count, position, length) {
        const to = partitionOf(topic, partition)
        if (baseOffset !== to.end) {
          throw new Error(`${to.handle.topic}/${partition} goes on at offset ${baseOffset} instead of ${to.end}`)
        }
        addBatch(to, count, bodyPosition + position, length)
        to.stable = to.end
      },
      offset(group, topic, partition, next, meta) {
        let known = contents.positions.get(group)
        if (known === undefined) contents.positions.set(group, (known = new Map()))
        known.set(partitionOf(topic, partition).handle, meta === undefined ? { next } : { next, meta })
      },
    })
  }

  return {
    contents,
    addTopic,
    addBatch,
    topicNumber(p) {
      const number = numbers.get(p.topic)
      if (number === undefined || topics[number]!.partitions[p.partition] === undefined) {
        throw new LogError('topic-unknown', `committing: there is no partition ${p.partition} of topic ${p.topic}`)
      }
      return number
    },
    visit(kind, position, body) {
      if (kind === frameKinds.commit) {
        visitCommit(position + frameHeadBytes, body)
      } else if (kind === frameKinds.topic) {
        addTopic(JSON.parse(body.toString()) as TopicSpec, position)
      } else if (kind === frameKinds.generation) {
        const { group, generation } = JSON.parse(body.toString()) as {
          group: string
          generation: number
        }
        contents.generations.set(group, generation)
      } else {
        throw new LogError(
          'journal-newer',
          `reading the journal at byte ${position}: frames of kind ${kind} are not known`,
        )
      }
    },
  }
}
