import { fstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSystemClock } from '../../../connectors/clock/system.ts'
import { type JournalIo, nodeIo } from '../../../connectors/log/embedded/io.ts'
import { type EmbeddedLog, type EmbeddedLogOptions, openEmbeddedLog } from '../../../connectors/log/embedded/open.ts'
import type { LogHarness } from '../../suites/log/harness.ts'

/** What a power cut leaves of the last file, of which `durable` bytes are certain. */
export type Tear = (bytes: Buffer, durable: number) => Buffer

export interface EmbeddedHarness extends LogHarness {
  open(): Promise<EmbeddedLog>
  reopen(tear?: Tear): Promise<EmbeddedLog>
  /** Where the journal is that was opened last. */
  dir(): string
}

/** A disk whose syncs cost nothing, for tests that open a journal a thousand times. */
export const unsafeIo: JournalIo = { ...nodeIo, datasync: (_fd, done) => setImmediate(done, null), datasyncNow() {} }

const onlyDurable: Tear = (bytes, durable) => bytes.subarray(0, durable)

/**
 * A journal whose reopening is a power cut: the next log is opened on a copy that has of each file only what an
 * fdatasync had covered when it began, and as much of the rest as `tear` leaves.
 */
export function embeddedHarness(options: Partial<EmbeddedLogOptions> = {}): EmbeddedHarness {
  const root = mkdtempSync(join(tmpdir(), 'weir-log-'))
  const logs: EmbeddedLog[] = []
  /** By inode: how much of a file is durable. */
  const durable = new Map<number, number>()
  let dir = ''
  let lives = 0
  const base = options.io ?? nodeIo
  const io: JournalIo = {
    ...base,
    datasync(fd, done) {
      const { ino, size } = fstatSync(fd)
      base.datasync(fd, (error) => {
        if (error === null) durable.set(ino, Math.max(size, durable.get(ino) ?? 0))
        done(error)
      })
    },
    datasyncNow(fd) {
      base.datasyncNow(fd)
      const { ino, size } = fstatSync(fd)
      durable.set(ino, size)
    },
  }

  async function openNext(tear: Tear = onlyDurable): Promise<EmbeddedLog> {
    const next = join(root, String(lives++))
    mkdirSync(next)
    if (dir !== '') copyTorn(dir, next, durable, tear)
    dir = next
    const log = await openEmbeddedLog({ clock: createSystemClock(), ...options, dir, io })
    logs.push(log)
    return log
  }

  return {
    open: () => openNext(),
    reopen: openNext,
    dir: () => dir,
    async close() {
      for (const log of logs) await Promise.resolve(log.close()).catch(() => {})
      rmSync(root, { recursive: true, force: true })
    },
  }
}

/** The journal in `dir` as one sequence of bytes. */
export function journalBytes(dir: string): Buffer {
  return Buffer.concat(journalNames(dir).map((name) => readFileSync(join(dir, name))))
}

export function journalNames(dir: string): string[] {
  return readdirSync(dir).sort()
}

function copyTorn(from: string, to: string, durable: Map<number, number>, tear: Tear): void {
  const names = journalNames(from)
  for (const [i, name] of names.entries()) {
    const bytes = readFileSync(join(from, name))
    const certain = durable.get(statSync(join(from, name)).ino) ?? 0
    const isLast = i === names.length - 1
    const left = isLast ? tear(bytes, certain) : bytes.subarray(0, certain)
    writeFileSync(join(to, name), left)
    // What a full file holds stays certain; of the last one opening has to make it so.
    if (!isLast) durable.set(statSync(join(to, name)).ino, left.length)
  }
}
