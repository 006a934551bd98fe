import { createRecordBatch } from '../../../connectors/log/batch.ts'
import type {
  Batch,
  Epoch,
  GroupOffsets,
  Headers,
  Input,
  Lane,
  Log,
  Outcome,
  Partition,
  Unit,
} from '../../../connectors/log/types.ts'

/** How a suite gets at an adapter. Each check has a harness of its own. */
export interface LogHarness {
  /** An empty log. */
  open(): Promise<Log>
  /** The process dies and the machine loses power without a `close`; then the log is opened again. Absent = it is lost. */
  reopen?(): Promise<Log>
  /** Closes what is open and removes it. */
  close(): Promise<void>
}

export type Sent = {
  key?: string | null
  value?: string | null
  at?: number
  headers?: Headers
}
export type Seen = {
  offset: number
  key: string | null
  value: string | null
  at: number
  headers: [string, string][]
}

/** Who commits for a group that has no members. */
export const toolEpoch: Epoch = { memberId: '', generation: -1 }
export const manyBytes = 1 << 24
/** Longer than any check lasts: a poll that waits for it was not woken. */
export const longMs = 8000

export async function openTopics(harness: LogHarness): Promise<Log> {
  const log = await harness.open()
  await log.ensure([
    { name: 'a', partitions: 3, cleanup: 'compact', maxRecordBytes: 1 << 20 },
    {
      name: 'b',
      partitions: 2,
      cleanup: 'delete',
      retentionMs: 86_400_000,
      maxRecordBytes: 1000,
    },
  ])
  return log
}

export function append(unit: Unit, to: Partition, ...records: readonly (string | Sent)[]): void {
  const batch = createRecordBatch(64)
  for (const record of records) {
    const { key = 'k', value = 'v', at = 1, headers } = typeof record === 'string' ? { value: record } : record
    batch.add(key === null ? null : Buffer.from(key), value === null ? null : Buffer.from(value), at, headers)
  }
  unit.append(to, batch)
}

/** Commits the values as one unit and returns the offset after them. */
export async function commitValues(lane: Lane, to: Partition, ...values: readonly (string | Sent)[]): Promise<number> {
  const unit = lane.begin('atomic')
  append(unit, to, ...values)
  const outcome = await unit.commit([])
  if (outcome.kind !== 'committed') throw new Error(`committing to ${to.topic}: ${describe(outcome)}`)
  const end = outcome.ends.get(to)
  if (end === undefined) throw new Error(`committing to ${to.topic}/${to.partition}: the outcome names no end`)
  return end
}

export function offsets(
  group: string,
  epoch: Epoch,
  ...at: readonly (readonly [Input, number, string?])[]
): GroupOffsets {
  const entries = at.map(([input, next, meta]) => [input, meta === undefined ? { next } : { next, meta }] as const)
  return { group, epoch, offsets: new Map(entries) }
}

export function seen(batch: Batch): Seen[] {
  return Array.from({ length: batch.count }, (_, i) => ({
    offset: batch.offset(i),
    key: text(batch.key(i)),
    value: text(batch.value(i)),
    at: batch.timestamp(i),
    headers: batch.headers(i).map(([name, value]): [string, string] => [name, text(value) ?? '']),
  }))
}

/** Polls without waiting until nothing more comes. */
export async function drain(lane: Lane, maxBytes = manyBytes): Promise<Map<Input, Seen[]>> {
  const all = new Map<Input, Seen[]>()
  for (;;) {
    const batches = await lane.poll(maxBytes, 0)
    if (batches.length === 0) return all
    for (const batch of batches) all.set(batch.from, [...(all.get(batch.from) ?? []), ...seen(batch)])
  }
}

/** The values of all visible records of a partition, read in pieces. */
export async function valuesOf(log: Log, p: Partition, maxBytes = manyBytes): Promise<(string | null)[]> {
  const values: (string | null)[] = []
  for (let from = 0; ; ) {
    const batch = await log.read(p, from, maxBytes, 'stable')
    if (batch === null) return values
    for (const record of seen(batch)) values.push(record.value)
    from = batch.nextOffset
  }
}

export function describe(outcome: Outcome): string {
  if (outcome.kind === 'fenced') return `fenced by ${outcome.by}`
  return outcome.kind === 'committed' ? 'committed' : `${outcome.kind}: ${outcome.error.message}`
}

function text(bytes: Uint8Array | null): string | null {
  return bytes === null ? null : Buffer.from(bytes).toString()
}
