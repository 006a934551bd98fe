/**
 * Two ranges in the same order as one. Of a key that is in both, `newer` counts; its null says that the key is deleted.
 */
export function* mergeRanges(
  older: Iterator<readonly [key: Uint8Array, value: Uint8Array]>,
  newer: Iterator<readonly [key: Uint8Array, value: Uint8Array | null]>,
  reverse: boolean,
): Generator<readonly [key: Uint8Array, value: Uint8Array]> {
  let o = older.next()
  let n = newer.next()
  while (!o.done || !n.done) {
    const order = o.done ? 1 : n.done ? -1 : Buffer.compare(o.value[0], n.value[0]) * (reverse ? -1 : 1)
    if (order < 0) {
      yield o.value
    } else if (n.value[1] !== null) {
      yield n.value
    }
    if (order >= 0) n = newer.next()
    if (order <= 0) o = older.next()
  }
}
