import { join } from 'node:path'
import { type Database, open, type RootDatabase, TransactionFlags } from 'lmdb'
import type { Clock, Timer } from '../clock/types.ts'
import { checkWrite, StoreError } from './errors.ts'
import { mergeRanges } from './merge.ts'
import { copyBytes, createSortedMap, type SortedMap } from './sorted-map.ts'
import type { Checkpoint, StoreProvider, TaskStore, Write } from './types.ts'

export interface LmdbStoreOptions {
  /** Folder over `<applicationId>/<taskId>/`. */
  readonly root: string
  /** Address space mapped at first; the map grows by itself. Default: lmdb's own 128 KiB. */
  readonly mapSizeBytes?: number
  /**
   * What is applied waits in memory until it is this much, then all of it is one LMDB transaction. Default 1 MiB. A
   * crash costs reading this much of the changelog again; 0 writes every `apply`, which costs a flush of the disk each.
   */
  readonly maxPendingBytes?: number
  /** With a clock, nothing waits longer than `maxPendingMs` (default 1 s), so a crash loses no more than that. */
  readonly clock?: Clock
  readonly maxPendingMs?: number
}

/**
 * Stores on disk: an LMDB environment a task, a named database a store, the checkpoint in one of its own.
 * What is applied is read back at once; it reaches LMDB in groups of whole applies, each one transaction with its
 * checkpoint, so after a crash data and checkpoint agree, and the changelog has what is newer. LMDB's commit waits for
 * the disk: a group shares that wait, and keys that are written again and again are written once. `sync`, `count`,
 * `wipe` and `close` write what waits. What `get` and `range` give are copies, or the store's own: do not change them.
 */
export function createLmdbStoreProvider(options: LmdbStoreOptions): StoreProvider {
  const opened = new Set<string>()
  return {
    open(applicationId, taskId, stores) {
      const name = `${applicationId}/${taskId}`
      if (opened.has(name)) throw new StoreError('already-open', `store ${name} is already open`)
      if (stores.includes(checkpointName)) {
        throw new StoreError('unknown-store', `store ${name}: ${checkpointName} is a reserved name`)
      }
      const store = openTask(name, join(options.root, applicationId, taskId), stores, options, () =>
        opened.delete(name),
      )
      opened.add(name)
      return store
    },
  }
}

const checkpointName = '__checkpoint'
const checkpointKey = Buffer.from('checkpoint')
// The first of all keys; the empty one is none.
const firstKey = Buffer.from([0])
const maxDatabases = 64
const defaultMaxPendingBytes = 1024 * 1024
const defaultMaxPendingMs = 1_000
// Ranges are read in pieces: a short one reads little, a long one makes few calls.
const firstPiece = 8
const largestPiece = 256
const commitFlags = TransactionFlags.ABORTABLE | TransactionFlags.SYNCHRONOUS_COMMIT | TransactionFlags.NO_SYNC_FLUSH

type Bytes = Database<Buffer, Buffer>
/** Of one store: what is applied and not yet in LMDB; null is a deletion. */
type Pending = SortedMap<Uint8Array | null>
type Entries = Generator<readonly [key: Uint8Array, value: Uint8Array]>
type SavedCheckpoint = { [changelog: string]: { topicId: string; next: number } }

function openTask(
  name: string,
  path: string,
  stores: readonly string[],
  options: LmdbStoreOptions,
  onClose: () => void,
): TaskStore {
  const { mapSizeBytes, maxPendingBytes = defaultMaxPendingBytes, maxPendingMs = defaultMaxPendingMs, clock } = options
  const root: RootDatabase<Buffer, Buffer> = open({
    path,
    noSubdir: false,
    maxDbs: maxDatabases,
    overlappingSync: true,
    ...(mapSizeBytes === undefined ? {} : { mapSize: mapSizeBytes }),
  })
  const openDatabase = (store: string): Bytes => root.openDB(store, { encoding: 'binary', keyEncoding: 'binary' })
  const databases = new Map(stores.map((store) => [store, openDatabase(store)]))
  const checkpoints = openDatabase(checkpointName)
  let checkpoint = parseCheckpoint(checkpoints.getBinary(checkpointKey))
  let pending = new Map<string, Pending>()
  let pendingBytes = 0
  let isPending = false
  let timer: Timer | undefined
  // Counts what changes the stores or where their entries are: an iterator that sees another number starts again behind
  // its last key.
  let version = 0
  let closed = false

  const checkOpen = (): void => {
    if (closed) throw new StoreError('closed', `store ${name} is closed`)
  }
  const databaseOf = (store: string): Bytes => {
    checkOpen()
    const database = databases.get(store)
    if (database === undefined) throw new StoreError('unknown-store', `store ${name} was opened without ${store}`)
    return database
  }

  const transact = (what: string, action: () => void): void => {
    try {
      root.transactionSync(action, commitFlags)
    } catch (error) {
      if (isDiskFull(error)) {
        throw new StoreError('disk-full', `store ${name}: ${what}: no space left on the disk`, { cause: error })
      }
      throw error
    }
    pending = new Map()
    pendingBytes = 0
    isPending = false
    timer?.cancel()
    timer = undefined
    version++
  }

  const writePending = (): void => {
    if (!isPending) return
    transact('writing what was applied', () => {
      for (const [store, entries] of pending) {
        const database = databases.get(store)!
        for (const [key, value] of entries.range(undefined, undefined, false)) {
          if (value === null) database.removeSync(asBuffer(key))
          else database.putSync(asBuffer(key), asBuffer(value))
        }
      }
      checkpoints.putSync(checkpointKey, Buffer.from(JSON.stringify(Object.fromEntries(checkpoint))))
    })
  }

  const keep = ([store, key, value]: Write): void => {
    let entries = pending.get(store)
    if (entries === undefined) {
      entries = createSortedMap()
      pending.set(store, entries)
    }
    entries.set(key, value === null ? null : copyBytes(value))
    pendingBytes += key.length + (value?.length ?? 0)
  }

  function* entriesOf(
    store: string,
    from: Uint8Array | undefined,
    to: Uint8Array | undefined,
    reverse: boolean,
  ): Entries {
    const database = databaseOf(store)
    let last: Uint8Array | undefined
    for (;;) {
      const seen = version
      const low = reverse ? from : (last ?? from)
      const high = reverse ? (last ?? to) : to
      const onDisk = reverse ? backward(database, low, high) : forward(database, low, high, last !== undefined)
      const waiting = pending.get(store)?.range(low, high, reverse)
      for (const entry of waiting === undefined ? onDisk : mergeRanges(onDisk, waiting, reverse)) {
        // A range begins at `last` itself when it goes forward.
        if (!reverse && last !== undefined && Buffer.compare(entry[0], last) === 0) continue
        yield entry
        checkOpen()
        last = entry[0]
        if (version !== seen) break
      }
      if (version === seen) return
    }
  }

  return {
    get(store, key) {
      const database = databaseOf(store)
      const waiting = pending.get(store)?.get(key)
      if (waiting !== undefined) return waiting ?? undefined
      // Nothing can be there, and lmdb would throw.
      if (key.length === 0) return undefined
      // A view of memory that lmdb uses again.
      const view = database.getBinaryFast(asBuffer(key))
      if (view === undefined) return undefined
      const value = Buffer.allocUnsafe(view.length)
      view.copy(value, 0, 0, view.length)
      return value
    },
    range(store, from, to, reverse = false) {
      databaseOf(store)
      if (from !== undefined && to !== undefined && Buffer.compare(from, to) >= 0) return [][Symbol.iterator]()
      return entriesOf(store, from, to, reverse)
    },
    count(store) {
      const database = databaseOf(store)
      writePending()
      return (database.getStats() as { entryCount: number }).entryCount
    },
    checkpoint() {
      return checkpoint
    },
    apply(writes, next) {
      checkOpen()
      // Everything that can be refused is looked at first: all or nothing.
      for (const write of writes) {
        databaseOf(write[0])
        checkWrite(write)
      }
      for (const write of writes) keep(write)
      checkpoint = new Map(next)
      isPending = true
      version++
      if (pendingBytes >= maxPendingBytes) writePending()
      else timer ??= clock?.setTimer(maxPendingMs, writePending)
    },
    async sync() {
      checkOpen()
      writePending()
      await flush(root)
    },
    wipe() {
      checkOpen()
      // Stores that an earlier version had are forgotten too.
      const names = [...root.getKeys()].map(String)
      const others = names.filter((n) => n !== checkpointName && !databases.has(n)).map(openDatabase)
      transact('wiping', () => {
        for (const database of [...databases.values(), ...others, checkpoints]) database.clearSync()
      })
      checkpoint = new Map()
    },
    async close() {
      if (closed) return
      writePending()
      closed = true
      await root.close()
      onClose()
    },
  }
}

/** `exclusive` leaves out `from` itself. */
function* forward(
  database: Bytes,
  from: Uint8Array | undefined,
  to: Uint8Array | undefined,
  exclusive: boolean,
): Entries {
  let start = from === undefined || from.length === 0 ? firstKey : asBuffer(from)
  let exclusiveStart = exclusive
  for (let limit = firstPiece; ; limit = Math.min(4 * limit, largestPiece)) {
    const piece = [
      ...database.getRange({ start, exclusiveStart, ...(to === undefined ? {} : { end: asBuffer(to) }), limit }),
    ]
    for (const { key, value } of piece) yield [key, value]
    if (piece.length < limit) return
    start = piece.at(-1)!.key
    exclusiveStart = true
  }
}

function* backward(database: Bytes, from: Uint8Array | undefined, to: Uint8Array | undefined): Entries {
  let start = to && asBuffer(to)
  const end = from === undefined || from.length === 0 ? firstKey : asBuffer(from)
  for (let limit = firstPiece; ; limit = Math.min(4 * limit, largestPiece)) {
    // Backwards lmdb begins at `start` itself, which is not wanted here, and would leave `end` out, which is.
    const piece = [
      ...database.getRange({
        reverse: true,
        ...(start === undefined ? {} : { start, exclusiveStart: true }),
        end,
        inclusiveEnd: true,
        limit,
      }),
    ]
    for (const { key, value } of piece) yield [key, value]
    if (piece.length < limit) return
    start = piece.at(-1)!.key
  }
}

function flush(root: RootDatabase<Buffer, Buffer>): Promise<void> {
  return new Promise((resolve, reject) => {
    // Not among its published types.
    const flushing = root as unknown as { sync(done: (error?: Error) => void): void }
    flushing.sync((error) => (error ? reject(error) : resolve()))
  })
}

function parseCheckpoint(saved: Buffer | undefined): Checkpoint {
  return new Map(saved === undefined ? [] : Object.entries(JSON.parse(saved.toString()) as SavedCheckpoint))
}

function isDiskFull(error: unknown): boolean {
  const { code, message } = error as { code?: unknown; message?: unknown }
  return code === 28 || code === 'ENOSPC' || /no space left/i.test(String(message))
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
