import * as keys from './keys.ts'
import { backOffMs, rules } from './options.ts'
import { closeBit, isOpen } from './records.ts'
import type { Turn } from './turn.ts'

/** Of the host's site, over all of its hosts: `pages` that answered, `leased`. Written when visits start and end. */
export function siteSums(turn: Turn): { [name: string]: number } {
  return turn.desk.stores.counts.get(siteKey(turn.host.site))?.sums ?? {}
}

export function addSiteSum(turn: Turn, change: { readonly pages?: number; readonly leased?: number }): void {
  const sums = siteSums(turn)
  sums.pages = (sums.pages ?? 0) + (change.pages ?? 0)
  sums.leased = (sums.leased ?? 0) + (change.leased ?? 0)
  turn.desk.stores.counts.put(siteKey(turn.host.site), { sums })
}

/** Index of a URL in the visit that is out; -1 when it is not of it. */
export function indexInLease(leased: Uint8Array | undefined, hash: Uint8Array): number {
  if (leased === undefined) return -1
  for (let at = 0; at + 16 <= leased.length; at += 16) {
    if (Buffer.compare(leased.subarray(at, at + 16), hash) === 0) return at / 16
  }
  return -1
}

/** An entry has its outcome, or will have none. False when that is known already. */
export function closeEntry(turn: Turn, index: number, origin: number | null): boolean {
  const { lease } = turn.host
  if (lease === null || !isOpen(lease, index)) return false
  closeBit(lease, index)
  if (origin !== null) turn.host.origins[origin]!.leased--
  return true
}

/** The visit is over. URLs that had no outcome are in the queue, where they always were. */
export function closeLease(turn: Turn): void {
  const { host, desk } = turn
  const { lease } = host
  if (lease === null) return
  for (const origin of host.origins) origin.leased = 0
  if (lease.visitKind === 'pages') {
    desk.stores.frontier.delete(keys.leaseKey(turn.name))
    addSiteSum(turn, { pages: lease.pages, leased: -lease.size })
  }
  host.vainVisits = lease.outcomes === 0 ? host.vainVisits + 1 : 0
  if (host.vainVisits > 0) {
    host.holdUntil = turn.now + backOffMs(rules.holdMs, 2, host.vainVisits, rules.maxHoldMs)
  }
  host.lease = null
}

function siteKey(site: string): string {
  return `site:${site}`
}
