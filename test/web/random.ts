/** Deterministic pseudo-random numbers: the same labels give the same sequence on every machine. */
export interface Random {
  /** Uniform in [0, 1). */
  next(): number
  /** Uniform integer in [0, n). */
  int(n: number): number
  /** Uniform in [low, high). */
  between(low: number, high: number): number
  chance(probability: number): boolean
  pick<T>(from: readonly T[]): T
}

/** A generator for the thing that the labels name, independent of every other one's (sfc32, Chris Doty-Humphrey's PractRand). */
export function createRandom(...labels: readonly (string | number)[]): Random {
  let a = 0x9e3779b9
  let b = 0x243f6a88
  let c = 0xb7e15162
  let counter = 1
  for (const label of labels) {
    const hash = hash32(String(label))
    a = mix(a ^ hash)
    b = mix(b + hash)
    c = mix(c ^ a ^ Math.imul(b, 5))
  }
  for (let i = 0; i < 12; i++) next32()

  function next32(): number {
    const sum = (((a + b) | 0) + counter) | 0
    counter = (counter + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (c << 21) | (c >>> 11)
    c = (c + sum) | 0
    return sum >>> 0
  }
  const next = () => next32() / 4_294_967_296
  return {
    next,
    int: (n) => Math.floor(next() * n),
    between: (low, high) => low + next() * (high - low),
    chance: (probability) => next() < probability,
    pick: (from) => from[Math.floor(next() * from.length)]!,
  }
}

/** FNV-1a over UTF-16 units with a final avalanche, unsigned 32 bits. */
export function hash32(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return mix(hash) >>> 0
}

/** The finalizer of MurmurHash3. */
function mix(value: number): number {
  let h = value | 0
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return h ^ (h >>> 16)
}
