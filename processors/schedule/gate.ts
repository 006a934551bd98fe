import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { stringSerde } from '../../schemas/codec.ts'
import { partitionOf } from '../../schemas/hash.ts'
import type { Visit } from '../../schemas/types.ts'
import type { Serde, StreamPartitioner } from '../../topology/streams/types.ts'

/** What a host is connected to, and the gate whose request budget it shares. */
export interface Target {
  readonly address: string
  readonly gate: string
}

/**
 * The lowest IPv4 address (`a:203.0.113.7`), else the lowest IPv6 one, its gate being the /64 (`a6:2001:db8::/64`).
 * An IPv4-mapped address counts as IPv4. What is no address is left out; null when none is left.
 */
export function targetOf(addresses: readonly string[]): Target | null {
  let best: ipaddr.IPv4 | ipaddr.IPv6 | undefined
  for (const text of addresses) {
    if (isIP(text) === 0) continue
    const address = ipaddr.process(text)
    if (best === undefined || isLower(address, best)) best = address
  }
  if (best === undefined) return null
  if (best.kind() === 'ipv4') return { address: best.toString(), gate: `a:${best.toString()}` }
  const network = ipaddr.IPv6.networkAddressFromCIDR(`${best.toString()}/64`)
  return {
    address: best.toString(),
    gate: `a6:${network.toRFC5952String()}/64`,
  }
}

/** The address that a host name already is, brackets undone; null for a name. */
export function literalAddress(host: string): string | null {
  const bare = host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host
  return isIP(bare) === 0 ? null : bare
}

/** Gate of a visit that asks for a host's addresses. */
export function resolveGate(host: string): string {
  return `h:${host}`
}

/**
 * Keys of the sink `host-scheduled`. A visit's key is its host, and its value names the gate that picks the partition.
 * A tombstone has no value, so the gate of the record that it ends travels in the key, behind a zero byte, and is
 * not written.
 */
export function tombstoneKey(host: string, gate: string): string {
  return `${host}\0${gate}`
}

export const visitKeySerde: Serde<string> = {
  serialize(key) {
    const end = key.indexOf('\0')
    return stringSerde.serialize(end < 0 ? key : key.slice(0, end))
  },
  deserialize: stringSerde.deserialize,
}

export const hostScheduledPartitioner: StreamPartitioner<string, Visit> = (key, value, partitions) =>
  partitionOf(value === null ? key.slice(key.indexOf('\0') + 1) : value.gate, partitions)

function isLower(a: ipaddr.IPv4 | ipaddr.IPv6, b: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  if (a.kind() !== b.kind()) return a.kind() === 'ipv4'
  return Buffer.compare(Buffer.from(a.toByteArray()), Buffer.from(b.toByteArray())) < 0
}
