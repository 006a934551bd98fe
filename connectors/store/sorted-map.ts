/**
 * An ordered map with keys of bytes, in memory. Keys are kept as Latin-1 strings, one character a byte: JavaScript compares such
 * strings by character code, so their order is the order of the bytes, and a Map finds them without a comparison.
 * The order is a list of chunks of at most 512 entries, made at the first range: a store that is only looked up never
 * pays for it.
 */
export interface SortedMap<V> {
  readonly size: number
  get(key: Uint8Array): V | undefined
  /** Copies the key. */
  set(key: Uint8Array, value: V): void
  delete(key: Uint8Array): void
  /** `from` inclusive, `to` exclusive. Entries that are written meanwhile are met if they lie ahead. */
  range(
    from: Uint8Array | undefined,
    to: Uint8Array | undefined,
    reverse: boolean,
  ): IterableIterator<readonly [key: Uint8Array, value: V]>
}

export function createSortedMap<V>(): SortedMap<V> {
  const entries = new Map<string, Entry<V>>()
  let chunks: Entry<V>[][] | undefined
  // Counts what moves entries within chunks: an iterator that sees another number finds its place again.
  let moves = 0

  const order = (): Entry<V>[][] => {
    if (chunks === undefined) {
      const all = [...entries.values()].sort((a, b) => (a.text < b.text ? -1 : 1))
      chunks = []
      for (let i = 0; i < all.length; i += chunkFill) chunks.push(all.slice(i, i + chunkFill))
      moves++
    }
    return chunks
  }

  const insert = (all: Entry<V>[][], entry: Entry<V>): void => {
    moves++
    if (all.length === 0) {
      all.push([entry])
      return
    }
    // The last chunk that begins at or before the entry, or the first.
    const at = Math.max(0, lowerChunk(all, entry.text))
    const chunk = all[at]!
    chunk.splice(lowerBound(chunk, entry.text), 0, entry)
    // Keys often come in rising order: then the full chunk stays full and a new one begins.
    if (chunk.length > chunkMax) {
      const cut = at === all.length - 1 && chunk[chunk.length - 1] === entry ? chunk.length - 1 : chunk.length >>> 1
      all.splice(at + 1, 0, chunk.splice(cut))
    }
  }

  const remove = (all: Entry<V>[][], text: string): void => {
    moves++
    const at = lowerChunk(all, text)
    const chunk = all[at]!
    chunk.splice(lowerBound(chunk, text), 1)
    if (chunk.length === 0) all.splice(at, 1)
  }

  function* forward(from: string | undefined, to: string | undefined): Generator<readonly [Uint8Array, V]> {
    let all = order()
    let seen = moves
    let [chunkAt, entryAt] = from === undefined ? [0, 0] : seek(all, from)
    for (;;) {
      const chunk = all[chunkAt]
      if (chunk === undefined) return
      const entry = chunk[entryAt]
      if (entry === undefined) {
        chunkAt++
        entryAt = 0
        continue
      }
      if (to !== undefined && entry.text >= to) return
      yield [entry.key, entry.value]
      if (moves === seen) {
        entryAt++
      } else {
        all = order()
        seen = moves
        const place = seek(all, entry.text)
        ;[chunkAt, entryAt] = place
        if (all[chunkAt]?.[entryAt]?.text === entry.text) entryAt++
      }
    }
  }

  function* backward(from: string | undefined, to: string | undefined): Generator<readonly [Uint8Array, V]> {
    let all = order()
    let seen = moves
    let [chunkAt, entryAt] = to === undefined ? [all.length, 0] : seek(all, to)
    for (;;) {
      if (entryAt === 0) {
        chunkAt--
        const before = all[chunkAt]
        if (before === undefined) return
        entryAt = before.length
      }
      const entry = all[chunkAt]![--entryAt]!
      if (from !== undefined && entry.text < from) return
      yield [entry.key, entry.value]
      if (moves !== seen) {
        all = order()
        seen = moves
        ;[chunkAt, entryAt] = seek(all, entry.text)
      }
    }
  }

  return {
    get size() {
      return entries.size
    },
    get(key) {
      return entries.get(textOf(key))?.value
    },
    set(key, value) {
      const text = textOf(key)
      const known = entries.get(text)
      if (known !== undefined) {
        known.value = value
        return
      }
      const entry = { text, key: copyBytes(key), value }
      entries.set(text, entry)
      if (chunks !== undefined) insert(chunks, entry)
    },
    delete(key) {
      const text = textOf(key)
      if (entries.delete(text) && chunks !== undefined) remove(chunks, text)
    },
    range(from, to, reverse) {
      const low = from && textOf(from)
      const high = to && textOf(to)
      return reverse ? backward(low, high) : forward(low, high)
    },
  }
}

interface Entry<V> {
  readonly text: string
  readonly key: Uint8Array
  value: V
}

/** A copy out of Node's pool: a memory block of its own for each small key would cost ten times as much. */
export function copyBytes(bytes: Uint8Array): Uint8Array {
  return Buffer.from(bytes)
}

const chunkMax = 512
const chunkFill = 384

function textOf(bytes: Uint8Array): string {
  return Buffer.prototype.latin1Slice.call(bytes, 0, bytes.length)
}

/** First index whose text is not below `text`. */
function lowerBound(chunk: readonly Entry<unknown>[], text: string): number {
  let low = 0
  let high = chunk.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (chunk[middle]!.text < text) low = middle + 1
    else high = middle
  }
  return low
}

/** The last chunk whose first entry is at or below `text`; -1 if every chunk begins above it. */
function lowerChunk(all: readonly Entry<unknown>[][], text: string): number {
  let low = 0
  let high = all.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (all[middle]![0]!.text <= text) low = middle + 1
    else high = middle
  }
  return low - 1
}

/** Where the first entry at or above `text` is; the entry index may be the chunk's length. */
function seek(all: readonly Entry<unknown>[][], text: string): [chunk: number, entry: number] {
  const at = lowerChunk(all, text)
  return at < 0 ? [0, 0] : [at, lowerBound(all[at]!, text)]
}
