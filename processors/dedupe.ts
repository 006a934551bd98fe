import { bytesSerde } from '../schemas/codec.ts'
import { hash128 } from '../schemas/hash.ts'
import type { Candidate, Decision } from '../schemas/types.ts'
import type { KeyValueStore, ProcessorSupplier, StoreBuilder } from '../topology/streams/types.ts'
import { createReasonCounts, type ReasonCounts } from './reasons.ts'

/** urlHash (16 bytes) → least depth seen, one byte: 255 stands for all depths from there on. */
export const seenStore: StoreBuilder<Uint8Array, number> = {
  name: 'seen',
  keySerde: bytesSerde,
  valueSerde: {
    serialize: (depth) => Uint8Array.of(depth),
    deserialize(bytes) {
      if (bytes.length !== 1) throw new RangeError(`decoding a depth: ${bytes.length} bytes, not 1`)
      return bytes[0]!
    },
  },
}

/**
 * A URL enters once, exactly: the set is of 128-bit hashes. Forwards to `unseen` what is new, and what was seen at a
 * greater depth only (`improved`); other repeats are counted and go to `decisions` at each commit, one record a source.
 */
export function createDedupe(): ProcessorSupplier<string, Candidate, string, Candidate | Decision> {
  return (context) => {
    /** Sums since the last commit. */
    const repeats = new Map<string, { counts: ReasonCounts; at: number }>()
    let seen: KeyValueStore<Uint8Array, number>

    return {
      init() {
        seen = context.getStateStore<Uint8Array, number>('seen')
        repeats.clear()
      },
      process({ key, value, timestamp }) {
        // A tombstone of compaction by age: the URL stays seen.
        if (value === null) return
        const hash = hash128(key)
        const depth = Math.min(value.depth, maxDepth)
        const known = seen.get(hash)
        if (known === undefined || depth < known) {
          seen.put(hash, depth)
          context.forward({ key, value: { ...value, improved: known !== undefined } }, 'unseen')
          return
        }
        let sum = repeats.get(value.source)
        if (sum === undefined) {
          sum = { counts: createReasonCounts(), at: timestamp }
          repeats.set(value.source, sum)
        }
        sum.counts.add('repeat', key)
        sum.at = Math.max(sum.at, timestamp)
      },
      flush() {
        for (const [source, { counts, at }] of repeats) {
          const decision: Decision = {
            processor: 'dedupe',
            fetchId: null,
            total: counts.total,
            reasons: counts.list(),
            evidence: null,
            at,
          }
          context.forward({ key: source, value: decision, timestamp: at }, 'decisions')
        }
        repeats.clear()
      },
    }
  }
}

const maxDepth = 255
