/**
 * The staged writes of one store: what a task has written since the last commit. Keys are Latin-1 strings, one
 * character a byte, so their order is the order of the bytes. An undo log takes back what one record wrote.
 */
export interface StagedEntry {
  readonly text: string
  readonly key: Uint8Array
  /** Null: deleted. */
  value: Uint8Array | null
}

export class Overlay {
  readonly #entries = new Map<string, StagedEntry>()
  /** Sorted keys, made at the first range and kept up from then on. */
  #order: string[] | undefined
  /** Raised when entries move in `#order`: an iterator that sees another number finds its place again. */
  #moves = 0
  readonly #undoTexts: string[] = []
  readonly #undoValues: (Uint8Array | null | undefined)[] = []
  #bytes = 0

  get size(): number {
    return this.#entries.size
  }
  /** Keys, values and a guess at what holding them costs. */
  get bytes(): number {
    return this.#bytes
  }

  /** Undefined: nothing is staged for the key. */
  get(key: Uint8Array): StagedEntry | undefined {
    return this.#entries.size === 0 ? undefined : this.#entries.get(textOf(key))
  }

  /** Keeps both arrays. */
  set(key: Uint8Array, value: Uint8Array | null): void {
    const text = textOf(key)
    const known = this.#entries.get(text)
    this.#undoTexts.push(text)
    if (known !== undefined) {
      this.#undoValues.push(known.value)
      this.#bytes += sizeOf(value) - sizeOf(known.value)
      known.value = value
      return
    }
    this.#undoValues.push(undefined)
    this.#bytes += key.length + sizeOf(value) + entryOverheadBytes
    this.#entries.set(text, { text, key, value })
    if (this.#order !== undefined) {
      this.#order.splice(lowerBound(this.#order, text), 0, text)
      this.#moves++
    }
  }

  /** What was written since the last savepoint stays. */
  keep(): void {
    if (this.#undoTexts.length === 0) return
    this.#undoTexts.length = 0
    this.#undoValues.length = 0
  }

  /** What was written since the last savepoint is taken back. */
  rollback(): void {
    while (this.#undoTexts.length > 0) {
      const text = this.#undoTexts.pop()!
      const before = this.#undoValues.pop()
      const entry = this.#entries.get(text)!
      if (before !== undefined) {
        this.#bytes += sizeOf(before) - sizeOf(entry.value)
        entry.value = before
        continue
      }
      this.#bytes -= entry.key.length + sizeOf(entry.value) + entryOverheadBytes
      this.#entries.delete(text)
      if (this.#order !== undefined) {
        this.#order.splice(lowerBound(this.#order, text), 1)
        this.#moves++
      }
    }
  }

  clear(): void {
    this.#entries.clear()
    this.#order = undefined
    this.#moves++
    this.#undoTexts.length = 0
    this.#undoValues.length = 0
    this.#bytes = 0
  }

  /** In the order of their first staging. */
  entries(): IterableIterator<StagedEntry> {
    return this.#entries.values()
  }

  /** In byte order, `from` inclusive, `to` exclusive. Entries staged meanwhile are met if they lie ahead. */
  *range(from: string | undefined, to: string | undefined, reverse: boolean): Generator<StagedEntry> {
    let order = this.#sorted()
    let moves = this.#moves
    let at = reverse
      ? (to === undefined ? order.length : lowerBound(order, to)) - 1
      : from === undefined
        ? 0
        : lowerBound(order, from)
    for (;;) {
      const text = order[at]
      if (text === undefined) return
      if (reverse ? from !== undefined && text < from : to !== undefined && text >= to) return
      yield this.#entries.get(text)!
      if (moves !== this.#moves) {
        order = this.#sorted()
        moves = this.#moves
        at = lowerBound(order, text)
        if (!reverse && order[at] !== text) at--
      }
      at += reverse ? -1 : 1
    }
  }

  #sorted(): string[] {
    if (this.#order === undefined) {
      this.#order = [...this.#entries.keys()].sort()
      this.#moves++
    }
    return this.#order
  }
}

const entryOverheadBytes = 96

export function textOf(bytes: Uint8Array): string {
  return Buffer.prototype.latin1Slice.call(bytes, 0, bytes.length)
}

function sizeOf(value: Uint8Array | null): number {
  return value === null ? 0 : value.length
}

/** First index whose key is not below `text`. */
function lowerBound(order: readonly string[], text: string): number {
  let low = 0
  let high = order.length
  // Keys often come in rising order.
  if (high > 0 && order[high - 1]! < text) return high
  while (low < high) {
    const middle = (low + high) >>> 1
    if (order[middle]! < text) low = middle + 1
    else high = middle
  }
  return low
}
