import { asBuffer, findOversize } from '../batch.ts'
import { LogError } from '../errors.ts'
import type { GroupOffsets, Outcome, Partition, Unit } from '../types.ts'
import type { PartitionLog, PendingBatch } from './storage.ts'

/** What a unit needs of the log and lane that it belongs to. */
export interface UnitOwner {
  resolve(to: Partition, doing: string): PartitionLog
  /** Why a commit under these epochs would be refused. */
  refusal(groups: readonly GroupOffsets[]): Outcome | undefined
  /** Gives the batches their offsets, keeps them and makes them visible. Throws and rejects as `Storage.write`. */
  keep(buffer: Buffer, batches: readonly PendingBatch[], groups: readonly GroupOffsets[]): undefined | Promise<void>
  /** A test's planned failure of the next commit. */
  plannedFailure(): Outcome | undefined
  ended(): void
}

/** A unit collects encoded records in one buffer and hands them over as one. `buffer` is the lane's, used again. */
export function createUnit(mode: 'atomic' | 'idempotent', owner: UnitOwner, arena: { buffer: Buffer }): Unit {
  let used = 0
  let batches: PendingBatch[] = []
  const ends = new Map<Partition, number>()
  let failure: Outcome | undefined
  let isOpen = true

  function keep(groups: readonly GroupOffsets[]): undefined | Promise<void> {
    const kept = batches
    const saved = owner.keep(arena.buffer, kept, groups)
    for (const { to } of kept) ends.set(to.handle, to.end)
    batches = []
    used = 0
    return saved
  }

  function end(outcome: Outcome): Outcome {
    isOpen = false
    batches = []
    owner.ended()
    return outcome
  }

  return {
    orderedFlush: true,

    append(to, records) {
      if (!isOpen) throw new LogError('closed', `appending to ${to.topic}/${to.partition}: the unit has ended`)
      if (records.count === 0) return
      const log = owner.resolve(to, 'appending')
      const bytes = asBuffer(records.bytes())
      const { maxRecordBytes } = log.topic.spec
      if (bytes.length > maxRecordBytes) refuseOversize(to, bytes, records.count, maxRecordBytes)
      const next = used + bytes.length
      if (next > arena.buffer.length) grow(arena, used, next)
      bytes.copy(arena.buffer, used)
      const last = batches.at(-1)
      if (last?.to === log) {
        last.count += records.count
        last.end = next
      } else {
        batches.push({ to: log, count: records.count, start: used, end: next })
      }
      used = next
    },

    flush() {
      if (!isOpen) throw new LogError('closed', 'flushing a unit that has ended')
      if (failure !== undefined) throw errorOf(failure)
      // What an atomic unit holds is written by its commit: until then there is nothing to acknowledge.
      if (mode === 'atomic' || batches.length === 0) return
      failure = owner.refusal([])
      if (failure !== undefined) throw errorOf(failure)
      try {
        return keep([])?.catch((error: Error) => {
          failure = outcomeOf(error)
          throw error
        })
      } catch (error) {
        failure = outcomeOf(error as Error)
        throw error
      }
    },

    commit(groups) {
      if (!isOpen) return { kind: 'fatal', error: new LogError('closed', 'committing a unit that has ended') }
      const refused = failure ?? owner.plannedFailure() ?? owner.refusal(groups)
      if (refused !== undefined) return end(refused)
      try {
        const saved = keep(groups)
        const committed = end({ kind: 'committed', ends })
        return saved === undefined ? committed : saved.then(() => committed, outcomeOf)
      } catch (error) {
        return end(outcomeOf(error as Error))
      }
    },

    abort() {
      if (isOpen) end({ kind: 'aborted', error: new LogError('closed', 'aborted by its owner') })
    },
  }
}

function outcomeOf(error: Error): Outcome {
  const kind = error instanceof LogError && error.code === 'write-failed' ? 'aborted' : 'fatal'
  return { kind, error }
}

function errorOf(outcome: Outcome): Error {
  if (outcome.kind === 'aborted' || outcome.kind === 'fatal') return outcome.error
  return new LogError('fenced', 'flushing: the lane was opened again by another holder')
}

function refuseOversize(to: Partition, bytes: Buffer, count: number, maxRecordBytes: number): void {
  const found = findOversize(bytes, count, maxRecordBytes)
  if (found === undefined) return
  const key = found.key === null ? 'null' : JSON.stringify(Buffer.from(found.key.subarray(0, 200)).toString())
  throw new LogError(
    'record-too-large',
    `appending to ${to.topic}/${to.partition}: the record with key ${key} has ${found.sizeBytes} bytes, allowed are ${maxRecordBytes}`,
  )
}

function grow(arena: { buffer: Buffer }, used: number, needed: number): void {
  let size = Math.max(arena.buffer.length, 16_384)
  while (size < needed) size *= 2
  const larger = Buffer.allocUnsafeSlow(size)
  arena.buffer.copy(larger, 0, 0, used)
  arena.buffer = larger
}
