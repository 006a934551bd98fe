/**
 * CRC-64-AVRO of a schema's parsing canonical form, 8 bytes little-endian as single-object encoding carries it
 * (Avro 1.11 specification, "Schema Fingerprints" and "Single-object encoding").
 */
export function crc64Avro(canonicalForm: string): Buffer {
  let crc = emptyCrc
  for (const byte of Buffer.from(canonicalForm, 'utf8')) {
    crc = (crc >> 8n) ^ table[Number((crc ^ BigInt(byte)) & 0xffn)]!
  }
  const out = Buffer.allocUnsafe(8)
  out.writeBigUInt64LE(crc)
  return out
}

const emptyCrc = 0xc15d213aa4d7a795n
const table = Array.from({ length: 256 }, (_, i) => {
  let crc = BigInt(i)
  for (let bit = 0; bit < 8; bit++) crc = (crc >> 1n) ^ (crc & 1n ? emptyCrc : 0n)
  return crc
})
