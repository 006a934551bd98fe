import { closeSync, fstatSync, fsyncSync, openSync, readdirSync, readSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { LogError } from '../errors.ts'

/** One file of the journal: bytes `base` to `base + size`. */
export type JournalFile = {
  readonly path: string
  readonly base: number
  readonly fd: number
  size: number
}

const name = /^(\d{20})\.log$/

function journalPath(dir: string, base: number): string {
  return join(dir, `${String(base).padStart(20, '0')}.log`)
}

/** The bases of the journal files in `dir`, ascending. Other names are left alone. */
export function listJournal(dir: string): number[] {
  const bases: number[] = []
  for (const entry of readdirSync(dir)) {
    const digits = name.exec(entry)?.[1]
    if (digits !== undefined) bases.push(Number(digits))
  }
  return bases.sort((a, b) => a - b)
}

export function openJournalFile(dir: string, base: number): JournalFile {
  const path = journalPath(dir, base)
  const fd = openSync(path, 'r+')
  return { path, base, fd, size: fstatSync(fd).size }
}

/** Makes a file and its name durable. */
export function createJournalFile(dir: string, base: number): JournalFile {
  const path = journalPath(dir, base)
  const fd = openSync(path, 'wx+', 0o644)
  try {
    syncDirectory(dir)
  } catch (error) {
    closeSync(fd)
    unlinkSync(path)
    throw error
  }
  return { path, base, fd, size: 0 }
}

/** Fills `into` from byte `at` of the file; throws where the file is shorter. */
export function readFully(file: JournalFile, at: number, into: Buffer): void {
  for (let done = 0; done < into.length; ) {
    const read = readSync(file.fd, into, done, into.length - done, at + done)
    if (read === 0)
      throw new LogError('journal-broken', `reading ${file.path} at byte ${at + done}: the file ends there`)
    done += read
  }
}

function syncDirectory(dir: string): void {
  const fd = openSync(dir, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
