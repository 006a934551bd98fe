import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRecordBatch } from '../../connectors/log/batch.ts'
import { createMemoryLog } from '../../connectors/log/memory.ts'
import { stringSerde, topicSerde } from '../../schemas/codec.ts'
import type { Control } from '../../schemas/types.ts'
import { readSeeds, seedHosts, seedRecords, writeSeeds } from '../../topology/seeds.ts'
import { topicName, topicSpecs } from '../../topology/topics.ts'

test('a host that a redirect opened is no seed: a server cannot make the next start ask for --allow-private', async () => {
  const log = createMemoryLog()
  await log.ensure(topicSpecs('weir', 4))
  const records = seedRecords(readSeeds(['https://example.org/'], 2048), { scope: 'host' }, 0)
  await writeSeeds(log, 'weir', 4, records, 0)
  const rule: Control = {
    kind: 'scope-host',
    mode: 'host',
    host: 'localhost',
    site: 'localhost',
    ports: [],
    why: 'redirect of seed https://example.org/',
    at: 0,
  }
  const batch = createRecordBatch()
  batch.add(stringSerde.serialize('scope-host:localhost'), topicSerde<Control>('controls').serialize(rule), 0)
  const unit = (await log.lane('test')).begin('atomic')
  unit.append(log.partition(topicName('weir', 'controls'), 0), batch)
  assert.equal((await unit.commit([])).kind, 'committed')
  assert.deepEqual(await seedHosts(log, 'weir'), ['example.org'])
})
