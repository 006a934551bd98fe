/**
 * A set of byte strings, numbered in the order of first sight, in one buffer. A candidate is written to the buffer's
 * end first; `add` keeps it or takes it back.
 */
export interface ByteSet {
  readonly bytes: Buffer
  /** Entry i is bytes[starts[i]..starts[i + 1]). */
  readonly starts: Uint32Array
  /** Where the candidate ends; it starts where the last entry ends. */
  end: number
  /** Makes room for a candidate; `bytes` may be another buffer after it. */
  reserve(length: number): void
  /** The number of the entry that equals the candidate, a new one if need be; -1 = it is new and the set is full. */
  add(): number
  reset(): void
}

export function createByteSet(maxEntries: number): ByteSet {
  const slotCount = 2 ** Math.ceil(Math.log2(2 * maxEntries))
  const mask = slotCount - 1
  /** Entry + 1; 0 = free. */
  const slots = new Uint16Array(slotCount)
  const hashes = new Int32Array(maxEntries)
  const usedSlots = new Uint16Array(maxEntries)
  // Entries made to collide end up here, so that time stays linear.
  const crowded = new Map<string, number>()
  let count = 0
  let bytes = Buffer.allocUnsafeSlow(firstBytes)

  const set = {
    get bytes() {
      return bytes
    },
    starts: new Uint32Array(maxEntries + 1),
    end: 0,
    reserve(length: number): void {
      if (set.end + length <= bytes.length) return
      const larger = Buffer.allocUnsafeSlow(2 * (set.end + length))
      bytes.copy(larger, 0, 0, set.end)
      bytes = larger
    },
    add(): number {
      const start = set.starts[count]!
      const hash = hashOf(bytes, start, set.end)
      let slot = hash & mask
      for (let probes = 1; slots[slot] !== 0; probes++) {
        const entry = slots[slot]! - 1
        if (hashes[entry] === hash && equals(entry, start)) {
          set.end = start
          return entry
        }
        if (probes === maxProbes) return addCrowded(start)
        slot = (slot + 1) & mask
      }
      const entry = append(start)
      if (entry >= 0) {
        hashes[entry] = hash
        slots[slot] = entry + 1
        usedSlots[entry] = slot
      }
      return entry
    },
    reset(): void {
      for (let i = 0; i < count; i++) slots[usedSlots[i]!] = 0
      crowded.clear()
      count = set.end = 0
      if (bytes.length > maxKeptBytes) bytes = Buffer.allocUnsafeSlow(firstBytes)
    },
  }
  return set

  function append(start: number): number {
    if (count === maxEntries) {
      set.end = start
      return -1
    }
    set.starts[count + 1] = set.end
    return count++
  }

  function addCrowded(start: number): number {
    const key = bytes.toString('latin1', start, set.end)
    const known = crowded.get(key)
    if (known !== undefined) {
      set.end = start
      return known
    }
    const entry = append(start)
    if (entry >= 0) {
      usedSlots[entry] = 0
      crowded.set(key, entry)
    }
    return entry
  }

  function equals(entry: number, start: number): boolean {
    const from = set.starts[entry]!
    const length = set.end - start
    if (set.starts[entry + 1]! - from !== length) return false
    let i = 0
    while (i < length && bytes[from + i] === bytes[start + i]) i++
    return i === length
  }
}

const firstBytes = 64 * 1024
const maxKeptBytes = 1024 * 1024
const maxProbes = 32

/** Not seeded: those who want collisions can have them. */
export function hashOf(bytes: Uint8Array, start: number, end: number): number {
  let hash = end - start
  for (let i = start; i < end; i++) hash = Math.imul(hash ^ bytes[i]!, 0x01000193)
  hash ^= hash >>> 15
  return hash
}
