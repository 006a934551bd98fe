/**
 * The Store port: an ordered map of bytes on one disk (or in memory) that belongs to one task.
 * Reads are synchronous; nothing is written but by `apply`, which a commit calls once.
 */
export type Write = readonly [store: string, key: Uint8Array, value: Uint8Array | null]

/** Per changelog partition: up to where it is contained in the store, and of which topic id. */
export type Checkpoint = ReadonlyMap<string, { readonly topicId: string; readonly next: number }>

export interface TaskStore {
  get(store: string, key: Uint8Array): Uint8Array | undefined
  /** Keys in byte order, `from` inclusive, `to` exclusive (undefined = open end). The views live until the next step. */
  range(
    store: string,
    from: Uint8Array | undefined,
    to: Uint8Array | undefined,
    reverse?: boolean,
  ): IterableIterator<readonly [key: Uint8Array, value: Uint8Array]>
  count(store: string): number
  checkpoint(): Checkpoint
  /** All writes and the checkpoint in one local transaction: after a crash all are there or none is. */
  apply(writes: readonly Write[], checkpoint: Checkpoint): void
  /** Makes what was applied survive a power cut. */
  sync(): Promise<void>
  /** Forgets everything, the checkpoint too. */
  wipe(): void
  close(): Promise<void>
}

export interface StoreProvider {
  /** Opens (creates) the store of one task: `<root>/<applicationId>/<taskId>/`. */
  open(applicationId: string, taskId: string, stores: readonly string[]): TaskStore
}
