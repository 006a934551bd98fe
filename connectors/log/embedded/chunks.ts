import type { Chunks } from '../local/storage.ts'

export interface JournalChunks extends Chunks {
  /** `position`, `length`: of the encoded records in the journal. */
  add(baseOffset: number, position: number, length: number): void
}

/** Where the chunks of a partition are in the journal: 20 bytes a chunk, nothing a record. */
export function createJournalChunks(read: (position: number, length: number) => Buffer): JournalChunks {
  let count = 0
  let bases = new Float64Array(8)
  let positions = new Float64Array(8)
  let lengths = new Uint32Array(8)
  return {
    get length() {
      return count
    },
    baseOffset: (chunk) => bases[chunk]!,
    bytes: (chunk) => read(positions[chunk]!, lengths[chunk]!),
    add(baseOffset, position, length) {
      if (count === bases.length) {
        const capacity = count * 2
        const [oldBases, oldPositions, oldLengths] = [bases, positions, lengths]
        bases = new Float64Array(capacity)
        positions = new Float64Array(capacity)
        lengths = new Uint32Array(capacity)
        bases.set(oldBases)
        positions.set(oldPositions)
        lengths.set(oldLengths)
      }
      bases[count] = baseOffset
      positions[count] = position
      lengths[count] = length
      count++
    },
  }
}
