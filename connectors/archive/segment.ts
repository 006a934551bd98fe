import {
  closeSync,
  constants,
  existsSync,
  fdatasync,
  fdatasyncSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  rmSync,
  writeSync,
  writevSync,
} from 'node:fs'
import { join } from 'node:path'
import { ArchiveError } from './errors.ts'
import { openMarkSuffix, syncedDigits } from './recover.ts'

/** A WARC file being written. Its length grows by whole members only. */
export interface Segment {
  readonly file: string
  readonly length: number
  /** All of the pieces or none. Throws ArchiveError `disk-full` or `write-failed`. */
  write(pieces: readonly Buffer[]): void
  /** What was written before the call is on the disk when `done` is called without an error. */
  sync(done: (error: Error | null) => void): void
  /** After a sync: closes the file and takes its mark away. */
  finish(): void
  /** Takes the file away again. */
  discard(): void
}

/** Creates the file; null when there is one of that name already. */
export function createSegment(dir: string, file: string): Segment | null {
  mkdirSync(dir, { recursive: true })
  const path = join(dir, file)
  const markPath = path + openMarkSuffix
  if (existsSync(path)) return null
  let mark: number
  let fd: number
  try {
    // The mark comes first: a file without one is taken to be whole.
    mark = openSync(markPath, constants.O_CREAT | constants.O_RDWR, 0o644)
    fd = openSync(path, 'wx', 0o644)
    syncFolder(dir)
  } catch (error) {
    throw writeError(file, error)
  }
  let length = 0

  return {
    file,
    get length() {
      return length
    },
    write(pieces) {
      const total = pieces.reduce((sum, piece) => sum + piece.length, 0)
      try {
        writeAll(fd, pieces, length, total)
      } catch (error) {
        // What is left behind is overwritten by the next write, or cut when the file is finished.
        try {
          ftruncateSync(fd, length)
        } catch {}
        throw writeError(file, error)
      }
      length += total
    },
    sync(done) {
      const upTo = length
      fdatasync(fd, (error) => {
        if (error === null) {
          try {
            writeSync(mark, String(upTo).padStart(syncedDigits, '0'), 0, 'latin1')
          } catch {
            // The mark only saves time: an old length makes a recovery read more.
          }
        }
        done(error)
      })
    },
    finish() {
      ftruncateSync(fd, length)
      fdatasyncSync(fd)
      closeSync(fd)
      closeSync(mark)
      rmSync(markPath)
    },
    discard() {
      closeSync(fd)
      closeSync(mark)
      rmSync(path)
      rmSync(markPath)
    },
  }
}

function writeAll(fd: number, pieces: readonly Buffer[], position: number, total: number): void {
  let written = writevSync(fd, pieces, position)
  if (written === total) return
  const rest = Buffer.concat(pieces)
  while (written < total) {
    const n = writeSync(fd, rest, written, total - written, position + written)
    // A write of nothing is how some file systems say that they are full.
    if (n === 0)
      throw Object.assign(new Error('nothing more could be written'), {
        code: 'ENOSPC',
      })
    written += n
  }
}

function writeError(file: string, error: unknown): ArchiveError {
  const { code, message } = error as { code?: string; message: string }
  return code === 'ENOSPC' || code === 'EDQUOT'
    ? new ArchiveError('disk-full', `writing ${file}: no space left on the disk`, { cause: error })
    : new ArchiveError('write-failed', `writing ${file}: ${message}`, {
        cause: error,
      })
}

/** A new file is there after a power cut only once its folder is synced. */
function syncFolder(dir: string): void {
  const fd = openSync(dir, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
