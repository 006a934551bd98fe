import { fdatasync, fdatasyncSync, ftruncateSync, writeSync } from 'node:fs'

/** What the journal asks of the disk when it writes: an argument, so that a test can be the disk that is full. */
export interface JournalIo {
  /** At most `length` bytes from `offset` of `buffer` to byte `position` of the file; returns how many. */
  write(fd: number, buffer: Buffer, offset: number, length: number, position: number): number
  datasync(fd: number, done: (error: Error | null) => void): void
  /** Where the event loop has to wait: at opening, and when a file is full. */
  datasyncNow(fd: number): void
  truncate(fd: number, length: number): void
}

export const nodeIo: JournalIo = {
  write: (fd, buffer, offset, length, position) => writeSync(fd, buffer, offset, length, position),
  datasync: (fd, done) => fdatasync(fd, done),
  datasyncNow: fdatasyncSync,
  truncate: (fd, length) => ftruncateSync(fd, length),
}
