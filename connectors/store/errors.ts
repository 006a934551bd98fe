import type { Write } from './types.ts'

/** What a store refuses. `code` is stable; the text names the store. */
export type StoreErrorCode = 'key-too-long' | 'key-empty' | 'unknown-store' | 'closed' | 'already-open' | 'disk-full'

export class StoreError extends Error {
  readonly code: StoreErrorCode

  constructor(code: StoreErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'StoreError'
    this.code = code
  }
}

/** LMDB's limit at lmdb-js's default page size. Every adapter keeps it, so that a test in memory finds long keys. */
export const maxKeyBytes = 1978

/** Throws StoreError `key-empty` or `key-too-long`, and TypeError where there are no bytes. */
export function checkWrite([store, key, value]: Write): void {
  if (!(key instanceof Uint8Array) || (value !== null && !(value instanceof Uint8Array))) {
    throw new TypeError(`store ${store}: keys and values are bytes`)
  }
  checkKey(store, key)
}

/** What every adapter demands of a key. Throws StoreError `key-empty` or `key-too-long`. */
export function checkKey(store: string, key: Uint8Array): void {
  if (key.length > maxKeyBytes) {
    throw new StoreError(
      'key-too-long',
      `store ${store}: a key of ${key.length} bytes, at most ${maxKeyBytes} are possible (hash what is longer)`,
    )
  }
  if (key.length === 0) throw new StoreError('key-empty', `store ${store}: the empty key is not possible`)
}
