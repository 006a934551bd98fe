import { checkWrite, StoreError } from './errors.ts'
import { copyBytes, createSortedMap, type SortedMap } from './sorted-map.ts'
import type { Checkpoint, StoreProvider, TaskStore } from './types.ts'

/**
 * Stores in memory, for tests and the simulation. What a task wrote stays in the provider when the task is closed, so
 * that a restart can be played. A task is opened by one holder at a time (StoreError `already-open`).
 */
export function createMemoryStoreProvider(): StoreProvider {
  const tasks = new Map<string, TaskState>()
  return {
    open(applicationId, taskId, stores) {
      const name = `${applicationId}/${taskId}`
      let state = tasks.get(name)
      if (state === undefined) {
        state = { maps: new Map(), checkpoint: new Map(), open: false }
        tasks.set(name, state)
      }
      if (state.open) throw new StoreError('already-open', `store ${name} is already open`)
      state.open = true
      for (const store of stores) if (!state.maps.has(store)) state.maps.set(store, createSortedMap())
      return openTask(name, state, new Set(stores))
    },
  }
}

interface TaskState {
  readonly maps: Map<string, SortedMap<Uint8Array>>
  checkpoint: Checkpoint
  open: boolean
}

function openTask(name: string, state: TaskState, stores: ReadonlySet<string>): TaskStore {
  let closed = false
  const checkOpen = (): void => {
    if (closed) throw new StoreError('closed', `store ${name} is closed`)
  }
  const mapOf = (store: string): SortedMap<Uint8Array> => {
    checkOpen()
    const map = stores.has(store) ? state.maps.get(store) : undefined
    if (map === undefined) throw new StoreError('unknown-store', `store ${name} was opened without ${store}`)
    return map
  }
  return {
    get(store, key) {
      return mapOf(store).get(key)
    },
    range(store, from, to, reverse = false) {
      return mapOf(store).range(from, to, reverse)
    },
    count(store) {
      return mapOf(store).size
    },
    checkpoint() {
      return state.checkpoint
    },
    apply(writes, checkpoint) {
      checkOpen()
      // Everything that can be refused is looked at first: all or nothing.
      for (const write of writes) {
        mapOf(write[0])
        checkWrite(write)
      }
      for (const [store, key, value] of writes) {
        const map = mapOf(store)
        if (value === null) map.delete(key)
        else map.set(key, copyBytes(value))
      }
      state.checkpoint = new Map(checkpoint)
    },
    async sync() {},
    wipe() {
      checkOpen()
      for (const store of state.maps.keys()) state.maps.set(store, createSortedMap())
      state.checkpoint = new Map()
    },
    async close() {
      if (!closed) state.open = false
      closed = true
    },
  }
}
