import type { PendingBatch, Storage } from '../local/storage.ts'
import { batchHeadBytes, commitBytes, writeCommit } from './commit.ts'
import { type FrameKind, frameHeadBytes, frameKinds } from './frame.ts'
import type { Journal } from './journal.ts'
import type { JournalIndex } from './journal-index.ts'

/** A local log's storage that is a journal: what is written is indexed at once and durable after the next sync. */
export function createJournalStorage(journal: Journal, index: JournalIndex): Storage {
  function append(kind: FrameKind, value: unknown): number {
    const body = Buffer.from(JSON.stringify(value))
    return journal.append(kind, body.length, (target, at) => body.copy(target, at))
  }

  return {
    createTopic(spec) {
      return index.addTopic(spec, append(frameKinds.topic, spec) - frameHeadBytes)
    },
    write(buffer, batches, groups) {
      const bases = baseOffsets(batches)
      const body = journal.append(frameKinds.commit, commitBytes(batches, groups), (target, at) =>
        writeCommit(target, at, buffer, batches, groups, bases, index.topicNumber),
      )
      let position = body + 4
      for (const { to, count, start, end } of batches) {
        index.addBatch(to, count, position + batchHeadBytes, end - start)
        position += batchHeadBytes + end - start
      }
      return journal.sync()
    },
    keepGeneration(group, generation) {
      append(frameKinds.generation, { group, generation })
      return journal.sync()
    },
    settled: () => (journal.isSynced ? undefined : journal.sync()),
    close: () => journal.close(),
  }
}

/** A unit may have several batches for one partition. */
function baseOffsets(batches: readonly PendingBatch[]): number[] {
  const bases: number[] = []
  for (let i = 0; i < batches.length; i++) {
    let base = batches[i]!.to.end
    for (let earlier = 0; earlier < i; earlier++) {
      if (batches[earlier]!.to === batches[i]!.to) base += batches[earlier]!.count
    }
    bases.push(base)
  }
  return bases
}
