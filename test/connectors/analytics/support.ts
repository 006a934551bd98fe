import { createRequire } from 'node:module'

/** Why the embedded ClickHouse cannot be tested here; false where it can. For a test's `skip`. */
export function withoutChdb(): string | false {
  try {
    createRequire(import.meta.url).resolve('chdb')
    return false
  } catch {
    return 'the optional package chdb is not installed: nothing of the embedded ClickHouse is tested'
  }
}
