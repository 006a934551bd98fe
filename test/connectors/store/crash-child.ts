import { createLmdbStoreProvider } from '../../../connectors/store/lmdb.ts'
import { writesOf } from './crash-writes.ts'

/** Applies batch after batch, numbered by the checkpoint, until it is killed. Arguments: root, seed. */
const [root, seed] = process.argv.slice(2)
const store = createLmdbStoreProvider({ root: root!, maxPendingBytes: 50_000 }).open('app', '0_0', ['a', 'b'])
let next = store.checkpoint().get('changelog')?.next ?? 0
process.stdout.write('ready\n')
for (;;) {
  store.apply(writesOf(Number(seed), next), new Map([['changelog', { topicId: 'id', next: next + 1 }]]))
  next++
  // Now and then a flush runs beside the next batches, as in a crawl.
  if (next % 50 === 0) void store.sync()
  if (next % 7 === 0) await new Promise((resolve) => setImmediate(resolve))
}
