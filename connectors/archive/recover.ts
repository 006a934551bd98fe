import {
  closeSync,
  existsSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs'
import { join } from 'node:path'
import { ArchiveError } from './errors.ts'
import { readWarcFile } from './warc-reader.ts'

/** A file that a killed process left open was cut back to its last whole record; `toBytes` 0 = it had none. */
export interface TailCut {
  readonly kind: 'tail-cut'
  readonly file: string
  readonly fromBytes: number
  readonly toBytes: number
}

/**
 * While a segment is written, `<file>.open` lies beside it and holds the length that was last synced, as 16 digits. A
 * process that ends well removes it; after a kill it says which files may have a torn tail, and from where to look.
 */
export const openMarkSuffix = '.open'
export const syncedDigits = 16

/**
 * Cuts torn tails of the files in `dir` whose name `isOurs`: nobody may be writing them. Files that are whole stay as
 * they are, so every pointer into them stays valid. Throws what the file system throws.
 */
export function recoverSegments(
  dir: string,
  isOurs: (file: string) => boolean,
  onEvent: (event: TailCut) => void = () => {},
): void {
  if (!existsSync(dir)) return
  for (const mark of readdirSync(dir)) {
    const file = mark.slice(0, -openMarkSuffix.length)
    if (!mark.endsWith(openMarkSuffix) || !isOurs(file)) continue
    const path = join(dir, file)
    if (existsSync(path)) recoverFile(path, file, syncedBytes(join(dir, mark)), onEvent)
    rmSync(join(dir, mark))
  }
}

function recoverFile(path: string, file: string, synced: number, onEvent: (event: TailCut) => void): void {
  const size = statSync(path).size
  const whole = wholeBytes(path, synced <= size ? synced : 0)
  if (whole === size && whole > 0) return
  if (whole === 0) {
    rmSync(path)
  } else {
    const fd = openSync(path, 'r+')
    try {
      ftruncateSync(fd, whole)
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
  }
  onEvent({ kind: 'tail-cut', file, fromBytes: size, toBytes: whole })
}

/** Up to where the file consists of whole records. */
function wholeBytes(path: string, from: number): number {
  let end = from
  try {
    for (const record of readWarcFile(path, { from })) end = record.offset + record.length
  } catch (error) {
    if (!(error instanceof ArchiveError)) throw error
  }
  return end
}

function syncedBytes(mark: string): number {
  const text = readFileSync(mark, 'latin1')
  return new RegExp(`^\\d{${syncedDigits}}$`).test(text) ? Number(text) : 0
}
