import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createVirtualClock } from '../../../connectors/clock/virtual.ts'
import { createHandles } from '../../../connectors/log/local/handles.ts'
import { createLocalLog } from '../../../connectors/log/local/log.ts'
import type { PartitionLog, Storage, Topic } from '../../../connectors/log/local/storage.ts'
import { commitValues, manyBytes, openTopics } from '../../suites/log/harness.ts'

test('what cannot be read is the trouble of the reader that waits, not of whoever commits', async () => {
  const handles = createHandles()
  const storage: Storage = {
    createTopic(spec) {
      const partitions: PartitionLog[] = []
      const topic: Topic = { spec, info: { name: spec.name, partitions: spec.partitions, id: spec.name }, partitions }
      const bytes = () => {
        throw new Error('unreadable sector')
      }
      for (let n = 0; n < spec.partitions; n++) {
        const chunks = { length: 1, baseOffset: () => 0, bytes }
        partitions.push({ handle: handles.partition(spec.name, n), topic, chunks, stable: 0, end: 0 })
      }
      return topic
    },
    write(_buffer, batches) {
      for (const { to, count } of batches) to.end += count
      return undefined
    },
    keepGeneration: () => undefined,
    settled: () => undefined,
    close: () => undefined,
  }
  const contents = { topics: new Map(), positions: new Map(), generations: new Map() }
  const log = createLocalLog({ clock: createVirtualClock(0), handles, storage, contents })
  await openTopics({ open: async () => log, close: async () => {} })
  const reader = await log.lane('reader')
  reader.assign(new Map([[log.input('g', 'a', 0), 0]]))
  const polled = Promise.resolve(reader.poll(manyBytes, 1000))
  const failed = assert.rejects(polled, /unreadable sector/)
  assert.equal(await commitValues(await log.lane('writer'), log.partition('a', 0), 'x'), 1)
  await failed
})
