import avsc from 'avsc'

/**
 * avsc's types, fitted to how this project writes values: bytes may be any Uint8Array, a nullable value is chosen by
 * `=== null` alone, enum words may contain `-` (`_` in the schema, whose symbols are names), strings are written well
 * formed, and a count that cannot be true ends decoding at once. Decoded records are plain objects.
 * The methods with a leading underscore are avsc's own seams between types; its version is pinned for that reason.
 */
export function compileSchema(schema: unknown): avsc.Type {
  return avsc.Type.forSchema(schema as avsc.Type, { typeHook, omitRecordMethods: true })
}

interface Tap {
  readonly buf: Buffer
  pos: number
  readLong(): number
  skipLong(): void
  readString(): string
  writeLong(value: number): void
  writeString(value: string): void
  writeBytes(value: Buffer): void
  writeFixed(value: Buffer, length: number): void
}
interface Readable {
  _read(tap: Tap): unknown
}

function typeHook(schema: unknown, options: object): avsc.Type | undefined {
  if (Array.isArray(schema)) return new NullableType(schema as unknown as avsc.Type, options)
  const kind = typeof schema === 'string' ? schema : (schema as { type: unknown }).type
  const definition = schema as avsc.Type
  switch (kind) {
    case 'long':
      return new ExactLongType()
    case 'string':
      return new WellFormedStringType()
    case 'bytes':
      return new AnyBytesType()
    case 'fixed':
      return new AnyFixedType(definition, options)
    case 'enum':
      return new WordEnumType(definition, options)
    case 'array':
      return new BoundedArrayType(definition, options)
    case 'map':
      return new BoundedMapType(definition, options)
    case 'record':
      return new PlainRecordType(definition, options)
    default:
      return undefined
  }
}

class NullableType extends avsc.types.UnwrappedUnionType {
  constructor(schema: avsc.Type, options: object) {
    super(schema, options)
    if (this.types.length !== 2 || this.types[0]!.typeName !== 'null') {
      throw new TypeError(`a union must be ["null", other], not ${JSON.stringify(schema)}`)
    }
  }

  _getIndex(value: unknown): number {
    return value === null ? 0 : 1
  }
}

/** A long takes a bit more in its zigzag form: what lies beyond 2^52 either way would be written as another number. */
const maxExactLong = 2 ** 52

class ExactLongType extends avsc.types.LongType {
  _check(value: unknown, _flags: unknown, hook?: (value: unknown, type: avsc.Type) => void): boolean {
    const ok = Number.isInteger(value) && Math.abs(value as number) <= maxExactLong
    if (!ok) hook?.(value, this)
    return ok
  }

  _write(tap: Tap, value: unknown): void {
    if (!Number.isInteger(value) || Math.abs(value as number) > maxExactLong) throw new TypeError('not an exact long')
    tap.writeLong(value as number)
  }
}

class WellFormedStringType extends avsc.types.StringType {
  _write(tap: Tap, value: unknown): void {
    if (typeof value !== 'string') throw new TypeError('not a string')
    tap.writeString(value.isWellFormed() ? value : value.toWellFormed())
  }
}

class AnyBytesType extends avsc.types.BytesType {
  _check(value: unknown, _flags: unknown, hook?: (value: unknown, type: avsc.Type) => void): boolean {
    const ok = value instanceof Uint8Array
    if (!ok) hook?.(value, this)
    return ok
  }

  _write(tap: Tap, value: unknown): void {
    if (!(value instanceof Uint8Array)) throw new TypeError('not bytes')
    tap.writeBytes(asBuffer(value))
  }
}

class AnyFixedType extends avsc.types.FixedType {
  _check(value: unknown, _flags: unknown, hook?: (value: unknown, type: avsc.Type) => void): boolean {
    const ok = value instanceof Uint8Array && value.length === this.size
    if (!ok) hook?.(value, this)
    return ok
  }

  _write(tap: Tap, value: unknown): void {
    if (!(value instanceof Uint8Array) || value.length !== this.size) throw new TypeError(`not ${this.size} bytes`)
    tap.writeFixed(asBuffer(value), this.size)
  }
}

class WordEnumType extends avsc.types.EnumType {
  declare readonly _indices: { [word: string]: number }

  constructor(schema: avsc.Type, options: object) {
    super(schema, options)
    // Words are found as symbols are; without a prototype, `constructor` is no word.
    Object.setPrototypeOf(this._indices, null)
    for (const symbol of this.symbols) this._indices[wordOf(symbol)] = this._indices[symbol]!
  }

  // Also runs with a resolver as `this`, whose symbols are the writer's, mapped to the reader's.
  _read(tap: Tap): string {
    const index = tap.readLong()
    const symbol = this.symbols[index]
    if (symbol === undefined) throw new RangeError(`enum index ${index} of ${this.symbols.length}`)
    return wordOf(symbol)
  }

  _copy(value: string): string {
    if (this._indices[value] === undefined) throw new RangeError(`not a symbol: ${value}`)
    return wordOf(value)
  }
}

class BoundedArrayType extends avsc.types.ArrayType {
  _read(tap: Tap): unknown[] {
    const items = this.itemsType as unknown as Readable
    const out: unknown[] = []
    for (let n = readCount(tap); n > 0; n = readCount(tap)) for (let i = 0; i < n; i++) out.push(items._read(tap))
    return out
  }
}

class BoundedMapType extends avsc.types.MapType {
  _read(tap: Tap): { [key: string]: unknown } {
    const values = this.valuesType as unknown as Readable
    const out: { [key: string]: unknown } = {}
    for (let n = readCount(tap); n > 0; n = readCount(tap)) {
      for (let i = 0; i < n; i++) {
        const key = tap.readString()
        const value = values._read(tap)
        if (key === '__proto__') {
          Object.defineProperty(out, key, { value, enumerable: true, configurable: true, writable: true })
        } else {
          out[key] = value
        }
      }
    }
    return out
  }
}

class PlainRecordType extends avsc.types.RecordType {
  constructor(schema: avsc.Type, options: object) {
    super(schema, options)
    // `new` then makes objects that are like literals, also to a deep comparison.
    this.recordConstructor.prototype = Object.prototype
  }
}

/** The items of the next block. Every item of our schemas has a byte at least, so more than what is left is a lie. */
function readCount(tap: Tap): number {
  let n = tap.readLong()
  if (n < 0) {
    n = -n
    tap.skipLong()
  }
  if (n > tap.buf.length - tap.pos) throw new RangeError(`a block of ${n} items in ${tap.buf.length - tap.pos} bytes`)
  return n
}

const words = new Map<string, string>()
function wordOf(symbol: string): string {
  let word = words.get(symbol)
  if (word === undefined) {
    word = symbol.replaceAll('_', '-')
    words.set(symbol, word)
  }
  return word
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
