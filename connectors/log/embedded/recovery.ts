import { closeSync } from 'node:fs'
import { LogError } from '../errors.ts'
import { createJournalFile, type JournalFile, listJournal, openJournalFile, readFully } from './files.ts'
import { type FrameHead, frameHeadBytes, frameMagic, frameVersion, isBodyIntact, readFrameHead } from './frame.ts'
import type { JournalIo } from './io.ts'

export type Recovery = {
  readonly files: JournalFile[]
  readonly frames: number
  readonly bytes: number
  /** Bytes of a torn tail: they were never acknowledged. */
  readonly droppedBytes: number
}

/** Told of each whole frame in order; `body` is valid during the call. */
export type FrameVisitor = (kind: number, position: number, body: Buffer) => void

const windowBytes = 4 << 20

/**
 * Reads a journal from its beginning, makes it durable, and cuts off a torn tail: what no later frame knows to have
 * been synced. Throws LogError `journal-broken` (a frame that was acknowledged, or a file, is damaged or missing) or
 * `journal-newer`; the files are then as they were.
 */
export function recoverJournal(dir: string, io: JournalIo, visit: FrameVisitor): Recovery {
  const files: JournalFile[] = []
  try {
    for (const base of listJournal(dir)) files.push(openJournalFile(dir, base))
    if (files.length === 0) files.push(createJournalFile(dir, 0))
    return readJournal(files, io, visit)
  } catch (error) {
    for (const { fd } of files) closeSync(fd)
    throw error
  }
}

function readJournal(files: JournalFile[], io: JournalIo, visit: FrameVisitor): Recovery {
  let frames = 0
  let droppedBytes = 0
  for (const [index, file] of files.entries()) {
    const previous = files[index - 1]
    if (previous !== undefined && previous.base + previous.size !== file.base) {
      throw brokenAt(previous, previous.size, `the next file begins at ${file.base}`)
    }
    const window = createWindow(file)
    let at = 0
    for (let frame = window.frame(at); frame !== undefined; frame = window.frame(at)) {
      visitFrame(file, at, frame, visit)
      frames++
      at += frameHeadBytes + frame.head.bodyLength
    }
    if (at === file.size) continue
    if (index < files.length - 1) throw brokenAt(file, at, 'there are later files')
    const proof = findProof(window, file, at)
    if (proof !== undefined) throw brokenAt(file, at, `the frame at byte ${proof} was written after it had been synced`)
    droppedBytes = file.size - at
    io.truncate(file.fd, at)
    file.size = at
  }
  const last = files.at(-1)!
  io.datasyncNow(last.fd)
  return { files, frames, bytes: last.base + last.size - files[0]!.base, droppedBytes }
}

type Frame = { readonly head: FrameHead; readonly body: Buffer }

function visitFrame(file: JournalFile, at: number, { head, body }: Frame, visit: FrameVisitor): void {
  if (head.version > frameVersion) {
    throw new LogError(
      'journal-newer',
      `reading ${file.path} at byte ${at}: the frame has version ${head.version}, known is ${frameVersion}`,
    )
  }
  try {
    visit(head.kind, file.base + at, body)
  } catch (error) {
    if (error instanceof LogError) throw error
    throw brokenAt(file, at, (error as Error).message)
  }
}

/** The first frame behind `at` that says that the journal was synced beyond `at` when it was written. */
function findProof(window: Window, file: JournalFile, at: number): number | undefined {
  for (let from = window.find(at + 1); from !== undefined; from = window.find(from + 1)) {
    const frame = window.frame(from)
    if (frame !== undefined && frame.head.syncedTo > file.base + at) return from
  }
  return undefined
}

function brokenAt(file: JournalFile, at: number, why: string): LogError {
  return new LogError('journal-broken', `reading ${file.path} at byte ${at}: no whole frame, but ${why}`)
}

interface Window {
  /** The whole and valid frame at a byte of the file. */
  frame(at: number): Frame | undefined
  /** Where the next frame may begin. */
  find(from: number): number | undefined
}

/** Reads a file in large pieces. */
function createWindow(file: JournalFile): Window {
  let buffer: Buffer = Buffer.alloc(0)
  let start = 0

  /** Bytes `at` to `at + length`, fewer at the end of the file. */
  function view(at: number, length: number): Buffer {
    const wanted = Math.min(length, file.size - at)
    if (at < start || at + wanted > start + buffer.length) {
      start = at
      buffer = Buffer.allocUnsafeSlow(Math.min(Math.max(windowBytes, wanted), file.size - at))
      readFully(file, at, buffer)
    }
    return buffer.subarray(at - start, at - start + wanted)
  }

  return {
    frame(at) {
      const head = readFrameHead(view(at, frameHeadBytes), 0, file.base + at)
      if (head === undefined || at + frameHeadBytes + head.bodyLength > file.size) return undefined
      const body = view(at + frameHeadBytes, head.bodyLength)
      return isBodyIntact(head, body) ? { head, body } : undefined
    },
    find(from) {
      for (let at = from; at + frameHeadBytes <= file.size; ) {
        const piece = view(at, windowBytes)
        const found = piece.indexOf(frameMagic)
        if (found >= 0) return at + found
        at += Math.max(1, piece.length - frameMagic.length + 1)
      }
      return undefined
    },
  }
}
