import { hash128 } from '../../schemas/hash.ts'
import type { PageRecord } from './records.ts'

/*
 * Keys of the stores `frontier`, `due` and `pages`. All of a host's lists share its name as prefix, so they lie
 * together; numbers are big-endian, so the order of bytes is the order of time and of queueing. URLs appear as hashes:
 * a key may have 1,978 bytes, a host name 253.
 */

/** Half-open range of keys. */
export interface KeyRange {
  readonly from: Uint8Array
  readonly to: Uint8Array
}

const tags = {
  queue: 0x71,
  wait: 0x77,
  blocked: 0x62,
  deep: 0x64,
  lease: 0x6c,
} as const
const maxTime = 2 ** 48 - 1

export const classes = 16
export function classOf(depth: number): number {
  return Math.min(Math.max(depth, 0), classes - 1)
}

export function pageKey(url: string): Buffer {
  return hash128(url)
}

/**
 * 8 bytes, then the host, which may be looked at from the time in the lower six on. The first byte keeps hosts with a
 * visit out (1: it may have expired) apart from those to be served (0), so that neither hides the other.
 */
export function dueKey(timeMs: number, host: string, isOut = false): Buffer {
  const key = Buffer.alloc(8 + Buffer.byteLength(host))
  key[0] = isOut ? 1 : 0
  key.writeUIntBE(clampTime(timeMs), 2, 6)
  key.write(host, 8)
  return key
}
export function dueKeyTime(key: Uint8Array): number {
  return view(key).readUIntBE(2, 6)
}
export function dueKeyHost(key: Uint8Array): string {
  return view(key).toString('utf8', 8)
}

/** Those that are due by `byMs` (absent = all). */
export function dueRange(isOut: boolean, byMs = maxTime - 1): KeyRange {
  return { from: dueKey(0, '', isOut), to: dueKey(Math.floor(byMs) + 1, '', isOut) }
}

/** Of the URL's place in the frontier; undefined when it is in none. */
export function placeKey(host: string, hash: Uint8Array, page: PageRecord): Buffer | undefined {
  switch (page.place) {
    case 'ready':
      return queueKey(host, page.origin, page.queueClass, page.order)
    case 'wait':
      return waitKey(host, page.next ?? 0, hash)
    case 'blocked':
      return blockedKey(host, page.origin, page.order, page.next ?? 0, hash)
    case 'deep':
      return deepKey(host, page.depth, hash)
    default:
      return undefined
  }
}

export function queueKey(host: string, origin: number, queueClass: number, order: number): Buffer {
  const { key, at } = start(host, tags.queue, 8)
  key[at] = origin
  key[at + 1] = queueClass
  key.writeUIntBE(order, at + 2, 6)
  return key
}
export function queueKeyClass(key: Uint8Array): number {
  return key[key.length - 7]!
}
export function queueKeyOrder(key: Uint8Array): number {
  return view(key).readUIntBE(key.length - 6, 6)
}
/** An origin's queue from one class on; `classes` gives how many it spans. */
export function queueRange(host: string, origin: number, fromClass = 0, span = classes): KeyRange {
  const to = queueKey(host, origin, 0, 0)
  // The class is below 256, so one past the last one never carries.
  to[to.length - 7] = fromClass + span
  return { from: queueKey(host, origin, fromClass, 0), to }
}

export function waitKey(host: string, timeMs: number, hash: Uint8Array): Buffer {
  const { key, at } = start(host, tags.wait, 22)
  key.writeUIntBE(clampTime(timeMs), at, 6)
  key.set(hash, at + 6)
  return key
}
export function waitKeyTime(key: Uint8Array): number {
  return view(key).readUIntBE(key.length - 22, 6)
}
/** Those whose time is before `endMs` (absent = all). */
export function waitRange(host: string, endMs = maxTime): KeyRange {
  return { from: waitKey(host, 0, noHash), to: waitKey(host, endMs, noHash) }
}

export function blockedKey(host: string, origin: number, generation: number, timeMs: number, hash: Uint8Array): Buffer {
  const { key, at } = start(host, tags.blocked, 27)
  key[at] = origin
  key.writeUInt32BE(generation, at + 1)
  key.writeUIntBE(clampTime(timeMs), at + 5, 6)
  key.set(hash, at + 11)
  return key
}
/** Refused by rules older than `generation`. */
export function blockedBefore(host: string, origin: number, generation: number): KeyRange {
  return {
    from: blockedKey(host, origin, 0, 0, noHash),
    to: blockedKey(host, origin, generation, 0, noHash),
  }
}
/** Refused by the rules of `generation`, to be looked at before `endMs`. */
export function blockedSince(host: string, origin: number, generation: number, endMs = maxTime): KeyRange {
  return {
    from: blockedKey(host, origin, generation, 0, noHash),
    to: blockedKey(host, origin, generation, endMs, noHash),
  }
}

export function deepKey(host: string, depth: number, hash: Uint8Array): Buffer {
  const { key, at } = start(host, tags.deep, 20)
  key.writeUInt32BE(depth, at)
  key.set(hash, at + 4)
  return key
}
export function deepRange(host: string, maxDepth: number | null): KeyRange {
  return {
    from: deepKey(host, 0, noHash),
    to: deepKey(host, Math.min(maxDepth ?? 0xfffffffe, 0xfffffffe) + 1, noHash),
  }
}

/** Hashes of the URLs of the visit that is out, 16 bytes each. */
export function leaseKey(host: string): Buffer {
  return start(host, tags.lease, 0).key
}

/** The hash at the end of a `wait`, `blocked` or `deep` key. */
export function keyHash(key: Uint8Array): Buffer {
  return Buffer.from(key.subarray(key.length - 16))
}

const noHash = new Uint8Array(16)

function start(host: string, tag: number, size: number): { key: Buffer; at: number } {
  const length = Buffer.byteLength(host)
  const key = Buffer.alloc(length + 2 + size)
  key.write(host, 0)
  key[length + 1] = tag
  return { key, at: length + 2 }
}

function clampTime(timeMs: number): number {
  return Math.min(Math.max(0, Math.floor(timeMs)), maxTime)
}

function view(key: Uint8Array): Buffer {
  return Buffer.isBuffer(key) ? key : Buffer.from(key.buffer, key.byteOffset, key.byteLength)
}
