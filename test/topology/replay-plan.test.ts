import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRecordBatch } from '../../connectors/log/batch.ts'
import { createMemoryLog } from '../../connectors/log/memory.ts'
import { stringSerde, topicSerde } from '../../schemas/codec.ts'
import type { Fetched } from '../../schemas/types.ts'
import { planPartition, type StoredPage } from '../../topology/replay-plan.ts'
import { topicName, topicSpecs } from '../../topology/topics.ts'
import { outcome } from '../processors/schedule/records.ts'

const url = 'http://a.example/'
const digest = (byte: number) => Buffer.alloc(20, byte)
const at = (file: string, offset: number) => ({ file, offset, length: 100 })

/** A page that was stored. */
function stored(fetchId: string, archive: Fetched['archive'], change: Partial<Fetched> = {}): Fetched {
  const startedAt = Number(fetchId) * 1000
  return outcome({ url, fetchId, startedAt, status: 200, bodyBytes: 9, payloadDigest: digest(1), archive, ...change })
}

test('the last stored body counts, with the response that it last came with', async () => {
  const same = stored('2', at('w1', 900), { revisit: true })
  assert.deepEqual(
    identities(
      await plan([
        [url, stored('1', at('w0', 5))],
        [url, same],
      ]),
    ),
    [['2', 2000, at('w0', 5)]],
  )
  // Later outcomes without a page of their own leave it: `parsed` still tells of that page.
  for (const later of [
    stored('3', at('w1', 1), { status: 404 }),
    stored('3', at('w1', 1), { status: 304, revisit: true, bodyBytes: 0 }),
    stored('3', null, { status: 0, error: 'reset' }),
    stored('3', at('w1', 1), { truncated: 'type', bodyBytes: 0 }),
    stored('3', at('w1', 1), { entryKind: 'robots', outcomeKind: 'robots' }),
    stored('3', at('w1', 1), { revisit: true, payloadDigest: digest(2) }),
  ]) {
    assert.deepEqual(
      identities(
        await plan([
          [url, stored('1', at('w0', 5))],
          [url, later],
        ]),
      ),
      [['1', 1000, at('w0', 5)]],
    )
  }
  assert.deepEqual(
    identities(
      await plan([
        [url, stored('1', at('w0', 5))],
        [url, stored('2', at('w1', 7))],
      ]),
    ),
    [['2', 2000, at('w1', 7)]],
  )
  assert.deepEqual(
    await plan([
      [url, stored('1', at('w0', 5))],
      [url, null],
    ]),
    [],
  )
})

test('pages come in the order of the archive, so that it is read from its beginning to its end', async () => {
  const refs = [at('w1', 5), at('w0', 900), at('w1', 2), at('w0', 1000), at('w0', 10)]
  const pages = await plan(refs.map((ref, i) => [`${url}${i}`, stored(String(i), ref)]))
  assert.deepEqual(
    pages.map(({ archive }) => `${archive.file} ${archive.offset}`),
    ['w0 10', 'w0 900', 'w0 1000', 'w1 2', 'w1 5'],
  )
})

test('a record that nobody can read is passed over', async () => {
  const log = await logOf([[url, stored('1', at('w0', 5))]])
  await append(log, 'x', Buffer.from('no Avro'))
  assert.equal((await planPartition({ log, ...whole })).pages.length, 1)
})

const whole = { crawl: 'weir', partition: 0, only: {}, parseVersion: null }

async function plan(records: readonly (readonly [string, Fetched | null])[]): Promise<StoredPage[]> {
  return (await planPartition({ log: await logOf(records), ...whole })).pages
}

function identities(pages: readonly StoredPage[]) {
  return pages.map(({ fetchId, fetchedAt, archive }) => [fetchId, fetchedAt, archive])
}

async function logOf(records: readonly (readonly [string, Fetched | null])[]) {
  const log = createMemoryLog()
  await log.ensure(topicSpecs('weir', 1))
  const serde = topicSerde<Fetched>('fetched')
  for (const [key, value] of records) await append(log, key, value === null ? null : serde.serialize(value))
  return log
}

async function append(log: ReturnType<typeof createMemoryLog>, key: string, value: Uint8Array | null): Promise<void> {
  const lane = await log.lane('test')
  const unit = lane.begin('atomic')
  const batch = createRecordBatch()
  batch.add(stringSerde.serialize(key), value, 0)
  unit.append(log.partition(topicName('weir', 'fetched'), 0), batch)
  assert.equal((await unit.commit([])).kind, 'committed')
  await lane.close()
}
