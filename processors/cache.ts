/** A bounded map that forgets what was not used lately. */
export interface RecentCache<V> {
  get(key: string): V | undefined
  set(key: string, value: V): void
  clear(): void
}

/**
 * Two generations of at most `capacity / 2` entries: when the young one is full it becomes the old one and the old one
 * is dropped; a hit in the old one moves the entry to the young. Close to LRU, without a linked list.
 */
export function createRecentCache<V>(capacity: number): RecentCache<V> {
  const half = Math.max(1, capacity >> 1)
  let young = new Map<string, V>()
  let old = new Map<string, V>()

  function set(key: string, value: V): void {
    if (young.size >= half && !young.has(key)) {
      old = young
      young = new Map()
    }
    young.set(key, value)
  }

  return {
    get(key) {
      const value = young.get(key)
      if (value !== undefined) return value
      const older = old.get(key)
      if (older !== undefined) set(key, older)
      return older
    },
    set,
    clear() {
      young = new Map()
      old = new Map()
    },
  }
}
