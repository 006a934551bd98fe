import type { Write } from '../../../connectors/store/types.ts'
import { xxh64 } from '../../../schemas/hash.ts'

/** The writes of one batch: a function of seed and batch number, with overwrites and deletions of earlier ones. */
export function writesOf(seed: number, batch: number): Write[] {
  return Array.from({ length: 40 }, (_, i) => {
    const random = xxh64(`${seed}:${batch}:${i}`)
    const key = Buffer.from(`key-${random % 3_000n}`)
    const value = random % 5n === 0n ? null : Buffer.alloc(Number((random >> 16n) % 300n), batch & 0xff)
    return [random % 2n === 0n ? 'a' : 'b', key, value]
  })
}
