import { closeSync } from 'node:fs'
import type { Faults } from '../../faults/types.ts'
import { LogError } from '../errors.ts'
import { createJournalFile, type JournalFile, readFully } from './files.ts'
import { type FrameKind, frameHeadBytes, writeFrameHead } from './frame.ts'
import type { JournalIo } from './io.ts'
import { createTail } from './tail.ts'

export interface JournalOptions {
  readonly dir: string
  /** Ascending, without gaps; at least one, the last is written on. All are durable. */
  readonly files: JournalFile[]
  readonly io: JournalIo
  readonly faults: Faults
  readonly maxFileBytes: number
  readonly cacheBytes: number
}

/** The journal as it is written and read after recovery. */
export interface Journal {
  /**
   * Writes one frame and returns the position of its body. `encode` writes exactly `bodyBytes` bytes. Throws LogError
   * `write-failed` when nothing of the frame stays; anything else thrown means that the journal is broken for good.
   */
  append(kind: FrameKind, bodyBytes: number, encode: (target: Buffer, at: number) => void): number
  /** All that is written is durable. What arrives during one turn of the event loop, or during a sync, shares one. */
  sync(): Promise<void>
  /** Where the next frame goes. */
  readonly end: number
  readonly isSynced: boolean
  read(position: number, length: number): Buffer
  /** Syncs and lets go of the files. */
  close(): Promise<void>
}

const readAheadBytes = 64 * 1024
const readAheadBlocks = 128

export function openJournal({ dir, files, io, faults, maxFileBytes, cacheBytes }: JournalOptions): Journal {
  const tail = createTail(cacheBytes)
  let current = files.at(-1)!
  let end = current.base + current.size
  let syncedTo = end
  let broken: Error | undefined
  let waiting: {
    readonly resolve: () => void
    readonly reject: (error: Error) => void
  }[] = []
  let syncIsPlanned = false
  let isSyncing = false
  let isClosed = false
  /** Blocks of older bytes, least recently used first. */
  const blocks = new Map<number, Buffer>()

  function write(buffer: Buffer, at: number, length: number): void {
    try {
      for (let done = 0; done < length; ) {
        const written = io.write(current.fd, buffer, at + done, length - done, current.size + done)
        if (written <= 0) throw new Error('the disk took no bytes')
        done += written
      }
    } catch (error) {
      takeBack(error as Error)
    }
  }

  /** A frame that is partly written is cut off, so that the next one follows the last whole one. */
  function takeBack(cause: Error): never {
    const doing = `writing a frame at byte ${current.size} of ${current.path}`
    try {
      io.truncate(current.fd, current.size)
    } catch (error) {
      broken = new Error(`${doing}: it failed (${cause.message}) and what is half written cannot be cut off`, {
        cause: error,
      })
      throw broken
    }
    throw new LogError('write-failed', `${doing}: ${cause.message}`, { cause })
  }

  /** The next file begins when the last one is durable: so only the last one can have a torn tail. */
  function roll(): void {
    try {
      io.datasyncNow(current.fd)
    } catch (error) {
      broken = error as Error
      throw error
    }
    syncedTo = end
    try {
      current = createJournalFile(dir, end)
    } catch (error) {
      throw new LogError('write-failed', `starting a journal file at ${end} in ${dir}`, { cause: error })
    }
    files.push(current)
  }

  function planSync(): void {
    if (syncIsPlanned || isSyncing) return
    syncIsPlanned = true
    setImmediate(startSync)
  }

  function startSync(): void {
    syncIsPlanned = false
    const taken = waiting
    waiting = []
    const upTo = end
    isSyncing = true
    io.datasync(current.fd, (error) => {
      isSyncing = false
      if (error !== null) {
        // What the kernel could not write it may have dropped: a later sync that succeeds would prove nothing.
        broken = new Error(`syncing ${current.path}: ${error.message}`, {
          cause: error,
        })
        for (const { reject } of [...taken, ...waiting.splice(0)]) reject(broken)
        return
      }
      syncedTo = Math.max(syncedTo, upTo)
      for (const { resolve } of taken) resolve()
      if (waiting.length > 0) planSync()
    })
  }

  function sync(): Promise<void> {
    if (broken !== undefined) return Promise.reject(broken)
    return new Promise((resolve, reject) => {
      waiting.push({ resolve, reject })
      planSync()
    })
  }

  function readBlock(file: JournalFile, block: number): Buffer {
    const key = file.base + block * readAheadBytes
    const at = block * readAheadBytes
    const length = Math.min(readAheadBytes, file.size - at)
    let buffer = blocks.get(key)
    if (buffer === undefined || buffer.length < length) {
      buffer = Buffer.allocUnsafeSlow(length)
      readFully(file, at, buffer)
    }
    blocks.delete(key)
    blocks.set(key, buffer)
    if (blocks.size > readAheadBlocks) blocks.delete(blocks.keys().next().value!)
    return buffer
  }

  return {
    get end() {
      return end
    },
    get isSynced() {
      return syncedTo === end && broken === undefined
    },
    append(kind, bodyBytes, encode) {
      if (broken !== undefined) throw broken
      if (isClosed) throw new LogError('closed', 'writing to the journal: it is closed')
      const frameBytes = frameHeadBytes + bodyBytes
      if (current.size > 0 && current.size + frameBytes > maxFileBytes) roll()
      const { buffer, at } = tail.reserve(frameBytes)
      encode(buffer, at + frameHeadBytes)
      writeFrameHead(buffer, at, kind, bodyBytes, end, syncedTo)
      write(buffer, at, frameBytes)
      const body = end + frameHeadBytes
      tail.commit(end, frameBytes)
      current.size += frameBytes
      end += frameBytes
      try {
        faults.hit('frame-written')
      } catch (error) {
        // A fault that throws stands for one that kills: nothing may follow.
        broken = error as Error
        throw error
      }
      return body
    },
    sync,
    read(position, length) {
      const kept = tail.find(position, length)
      if (kept !== undefined) return kept
      const file = fileOf(files, position)
      const at = position - file.base
      const block = Math.floor(at / readAheadBytes)
      if (at + length <= (block + 1) * readAheadBytes) {
        const from = at - block * readAheadBytes
        return readBlock(file, block).subarray(from, from + length)
      }
      const buffer = Buffer.allocUnsafeSlow(length)
      readFully(file, at, buffer)
      return buffer
    },
    async close() {
      if (isClosed) return
      isClosed = true
      try {
        // What broke it has been told to those whom it concerns.
        if (broken === undefined && (syncedTo < end || isSyncing)) await sync()
      } finally {
        for (const { fd } of files) closeSync(fd)
      }
    },
  }
}

function fileOf(files: readonly JournalFile[], position: number): JournalFile {
  let low = 0
  let high = files.length - 1
  while (low < high) {
    const middle = (low + high + 1) >>> 1
    if (files[middle]!.base <= position) low = middle
    else high = middle - 1
  }
  return files[low]!
}
