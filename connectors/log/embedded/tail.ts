/** The last bytes of the journal, kept in memory: frames are encoded into it, written from it, and read from it. */
export interface Tail {
  /** Room for `length` bytes; nothing is kept until `commit`. */
  reserve(length: number): { readonly buffer: Buffer; readonly at: number }
  /** The bytes reserved last are now at `position` of the journal. */
  commit(position: number, length: number): void
  /** A view, or undefined if these bytes are not kept (any more). */
  find(position: number, length: number): Buffer | undefined
}

type Block = { readonly buffer: Buffer; start: number; used: number }

/** Blocks are let go whole, oldest first, when they are over `maxBytes` together; views of them stay valid. */
export function createTail(maxBytes: number, blockBytes = Math.min(1 << 20, Math.max(4096, maxBytes >> 2))): Tail {
  const blocks: Block[] = []
  let bytes = 0
  /** A new block joins the others at `commit`, so that a failed write leaves no trace. */
  let target: Block | undefined

  return {
    reserve(length) {
      const last = blocks.at(-1)
      if (last !== undefined && last.used + length <= last.buffer.length) target = last
      else target = { buffer: Buffer.allocUnsafeSlow(Math.max(blockBytes, length)), start: -1, used: 0 }
      return { buffer: target.buffer, at: target.used }
    },
    commit(position, length) {
      if (target === undefined) return
      if (target.start < 0) {
        target.start = position
        blocks.push(target)
        bytes += target.buffer.length
        while (bytes > maxBytes && blocks.length > 1) bytes -= blocks.shift()!.buffer.length
      }
      target.used += length
    },
    find(position, length) {
      for (let i = blocks.length - 1; i >= 0; i--) {
        const { buffer, start, used } = blocks[i]!
        if (position < start) continue
        const at = position - start
        return at + length <= used ? buffer.subarray(at, at + length) : undefined
      }
      return undefined
    },
  }
}
