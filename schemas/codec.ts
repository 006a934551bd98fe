import { existsSync, readdirSync, readFileSync } from 'node:fs'
import type avsc from 'avsc'
import type { Serde } from '../topology/streams/types.ts'
import { compileSchema } from './avro-types.ts'
import { SchemaError } from './errors.ts'
import { crc64Avro } from './fingerprint.ts'

/**
 * Values of a topic (`topicSerde('fetched')`) or a store (`topicSerde('stores/hosts')`) in Avro single-object encoding:
 * C3 01, the fingerprint of the writer's schema, the body (Avro 1.11 specification, "Single-object encoding").
 * Writes with `schemas/<name>.avsc`; reads that and every version in `schemas/released/<name>/`.
 * `serialize` gives bytes of its own, throws SchemaError `invalid-value`. `deserialize` copies bytes and fixed fields,
 * so the value outlives the batch; throws SchemaError `not-avro`, `schema-unknown`, `malformed`.
 */
export function topicSerde<T>(schemaName: string): Serde<T> {
  let codec = codecs.get(schemaName)
  if (codec === undefined) {
    codec = createCodec(schemaName)
    codecs.set(schemaName, codec)
  }
  return codec as Serde<T>
}

/** UTF-8. Throws SchemaError `malformed` on bytes that are not. */
export const stringSerde: Serde<string> = {
  serialize(value) {
    return Buffer.from(value, 'utf8')
  },
  deserialize(bytes) {
    const text = Buffer.prototype.utf8Slice.call(bytes, 0, bytes.length)
    // A replacement character was either written or stands for what could not be read.
    if (text.includes('\ufffd') && Buffer.compare(Buffer.from(text, 'utf8'), bytes) !== 0) {
      throw new SchemaError('malformed', `decoding a string: ${bytes.length} bytes that are not UTF-8`)
    }
    return text
  },
}

/** Bytes as they are. `deserialize` copies, so the value outlives the batch. */
export const bytesSerde: Serde<Uint8Array> = {
  serialize(value) {
    return value
  },
  deserialize(bytes) {
    return Buffer.from(bytes)
  },
}

/** `schemas/<name>.avsc`, parsed as JSON. Throws SchemaError `schema-missing`. */
export function readSchemaFile(file: string): unknown {
  const url = new URL(file, import.meta.url)
  if (!existsSync(url)) throw new SchemaError('schema-missing', `there is no schemas/${file}`)
  return JSON.parse(readFileSync(url, 'utf8'))
}

/** Released versions of a schema, oldest first: file names relative to schemas/. */
export function releasedFiles(schemaName: string): string[] {
  const folder = new URL(`released/${schemaName}/`, import.meta.url)
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .filter((file) => /^\d+\.avsc$/.test(file))
    .sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10))
    .map((file) => `released/${schemaName}/${file}`)
}

export function fingerprintOf(type: avsc.Type): Buffer {
  return crc64Avro(JSON.stringify(type.schema()))
}

const codecs = new Map<string, Serde<unknown>>()
const headerLength = 10
// One for the thread: nothing that serializes calls anything that serializes.
let scratch = Buffer.allocUnsafeSlow(64 * 1024)

function createCodec(name: string): Serde<unknown> {
  const type = compileSchema(readSchemaFile(`${name}.avsc`))
  const header = headerOf(type)
  const fingerprintLow = header.readUInt32LE(2)
  const fingerprintHigh = header.readUInt32LE(6)
  let released: Map<string, avsc.Type> | undefined
  const resolvers = new Map<string, ReturnType<avsc.Type['createResolver']>>()

  const resolverOf = (fingerprint: string): ReturnType<avsc.Type['createResolver']> => {
    let resolver = resolvers.get(fingerprint)
    if (resolver === undefined) {
      released ??= new Map(
        releasedFiles(name).map((file) => {
          const writer = compileSchema(readSchemaFile(file))
          return [fingerprintOf(writer).toString('hex'), writer]
        }),
      )
      const writer = released.get(fingerprint)
      if (writer === undefined) {
        throw new SchemaError('schema-unknown', `decoding ${name}: no released schema has fingerprint ${fingerprint}`)
      }
      resolver = type.createResolver(writer)
      resolvers.set(fingerprint, resolver)
    }
    return resolver
  }

  return {
    serialize(value) {
      let end: number
      try {
        end = type.encode(value, scratch, headerLength)
        if (end < 0) {
          scratch = Buffer.allocUnsafeSlow(2 * (scratch.length - end))
          end = type.encode(value, scratch, headerLength)
        }
      } catch (error) {
        throw new SchemaError('invalid-value', `encoding ${name}: ${whatIsWrong(type, value, error)}`, { cause: error })
      }
      header.copy(scratch)
      return Buffer.from(scratch.subarray(0, end))
    },
    deserialize(bytes) {
      const buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
      if (buffer.length < headerLength || buffer[0] !== 0xc3 || buffer[1] !== 0x01) {
        throw new SchemaError('not-avro', `decoding ${name}: ${buffer.length} bytes without a single-object header`)
      }
      const resolver =
        buffer.readUInt32LE(2) === fingerprintLow && buffer.readUInt32LE(6) === fingerprintHigh
          ? undefined
          : resolverOf(buffer.toString('hex', 2, headerLength))
      let result: { value: unknown; offset: number }
      try {
        result = type.decode(buffer, headerLength, resolver)
      } catch (error) {
        throw new SchemaError('malformed', `decoding ${name}: ${(error as Error).message}`, { cause: error })
      }
      if (result.offset < 0) throw new SchemaError('malformed', `decoding ${name}: ${buffer.length} bytes are too few`)
      if (result.offset < buffer.length) {
        throw new SchemaError('malformed', `decoding ${name}: ${buffer.length - result.offset} bytes too many`)
      }
      return result.value
    },
  }
}

function headerOf(type: avsc.Type): Buffer {
  return Buffer.concat([Buffer.from([0xc3, 0x01]), fingerprintOf(type)])
}

/** Names the first field that does not fit: only a failed encoding pays for looking. */
function whatIsWrong(type: avsc.Type, value: unknown, error: unknown): string {
  let found: string | undefined
  type.isValid(value, {
    errorHook(path, part, expected) {
      found ??= `${path.join('.') || 'the value'} is not ${expected.name ?? expected.typeName}: ${String(part).slice(0, 80)}`
    },
  })
  return found ?? (error as Error).message
}
