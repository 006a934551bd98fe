import { mkdirSync } from 'node:fs'
import type { Clock } from '../../clock/types.ts'
import { type Faults, noFaults } from '../../faults/types.ts'
import { createHandles } from '../local/handles.ts'
import { createLocalLog } from '../local/log.ts'
import type { Log } from '../types.ts'
import { type JournalIo, nodeIo } from './io.ts'
import { type Journal, openJournal } from './journal.ts'
import { createJournalIndex } from './journal-index.ts'
import { recoverJournal } from './recovery.ts'
import { createJournalStorage } from './storage.ts'

export interface EmbeddedLogOptions {
  /** The journal's directory, made if it is missing. One process at a time: excluding a second is the caller's. */
  readonly dir: string
  readonly clock: Clock
  readonly faults?: Faults
  /** A new file begins when the next frame would make this one larger. */
  readonly maxFileBytes?: number
  /** How much of the journal's end is kept in memory for those who read along. */
  readonly cacheBytes?: number
  readonly io?: JournalIo
}

export interface EmbeddedLog extends Log {
  /** What opening found. `droppedBytes`: a torn tail, never acknowledged, that was cut off. */
  readonly recovery: {
    readonly frames: number
    readonly bytes: number
    readonly droppedBytes: number
  }
}

/**
 * Opens (makes) a log on one disk: one append-only journal, in which a commit is one frame with a checksum. It is
 * visible, and acknowledged, after an fdatasync that all commits of the moment share. After a crash or a power cut all
 * of a commit is there or nothing, and everything acknowledged is. Throws LogError `journal-broken`, `journal-newer`.
 */
export async function openEmbeddedLog(options: EmbeddedLogOptions): Promise<EmbeddedLog> {
  const { dir, clock, faults = noFaults, maxFileBytes = 256 << 20, cacheBytes = 32 << 20, io = nodeIo } = options
  mkdirSync(dir, { recursive: true })
  const handles = createHandles()
  let journal: Journal | undefined
  const index = createJournalIndex(handles, (position, length) => journal!.read(position, length))
  const recovery = recoverJournal(dir, io, index.visit)
  journal = openJournal({ dir, files: recovery.files, io, faults, maxFileBytes, cacheBytes })
  const log = createLocalLog({
    clock,
    handles,
    storage: createJournalStorage(journal, index),
    contents: index.contents,
  })
  const { frames, bytes, droppedBytes } = recovery
  return { ...log, recovery: { frames, bytes, droppedBytes } }
}
