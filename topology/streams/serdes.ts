import type { Serde } from './types.ts'

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** UTF-8; bytes that are not UTF-8 throw. */
export const stringSerde: Serde<string> = {
  serialize: (value) => Buffer.from(value, 'utf8'),
  deserialize: (bytes) => decoder.decode(bytes),
}

/** Bytes as they are. What is read is a copy: it stays valid after the batch that it came in. */
export const bytesSerde: Serde<Uint8Array> = {
  serialize: (value) => value,
  deserialize: (bytes) => Uint8Array.prototype.slice.call(bytes),
}

/** A safe integer as 8 bytes big-endian, so that keys of zero and above sort as numbers. */
export const integerSerde: Serde<number> = {
  serialize(value) {
    if (!Number.isSafeInteger(value)) throw new RangeError(`serializing ${value}: not a safe integer`)
    const bytes = Buffer.allocUnsafe(8)
    bytes.writeBigInt64BE(BigInt(value))
    return bytes
  },
  deserialize(bytes) {
    if (bytes.length !== 8) throw new RangeError(`deserializing an integer: ${bytes.length} bytes instead of 8`)
    return Number(Buffer.from(bytes.buffer, bytes.byteOffset, 8).readBigInt64BE())
  },
}
