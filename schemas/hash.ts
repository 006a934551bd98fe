import xxhash from 'xxhash-wasm'

const xx = await xxhash()
const mask64 = 0xffffffffffffffffn

/** XXH64, seed 0. */
export function xxh64(input: string | Uint8Array, seed = 0n): bigint {
  return typeof input === 'string' ? xx.h64(input, seed) : xx.h64Raw(input, seed)
}

/** 16 hexadecimal digits. */
export function xxh64Hex(input: string | Uint8Array): string {
  return (xxh64(input) & mask64).toString(16).padStart(16, '0')
}

/** urlHash and contentHash: XXH64(seed 0) ‖ XXH64(seed 1), big-endian, 16 bytes. */
export function hash128(input: string | Uint8Array): Buffer {
  const out = Buffer.allocUnsafe(16)
  out.writeBigUInt64BE(xxh64(input, 0n) & mask64, 0)
  out.writeBigUInt64BE(xxh64(input, 1n) & mask64, 8)
  return out
}

/** The lower half picks the partition, since the upper half picks a Bloom filter's block. */
export function partitionOf(key: string | Uint8Array, count: number): number {
  return Number(xxh64(key) & 0xffffffffn) % count
}
