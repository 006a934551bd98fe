import { fairPick } from './frontier.ts'
import * as keys from './keys.ts'
import type { ReadOnlyScheduleStores } from './stores.ts'

export interface DueHost {
  readonly host: string
  readonly dueAt: number
  /** Class of the head of its queue. */
  readonly frontClass: number
}

/**
 * Hosts for which something can be done by `byMs`, the longest due first, at most `limit`: with `isOut` those whose visit
 * may have expired, without it those that may be served.
 */
export function dueHosts(
  stores: Pick<ReadOnlyScheduleStores, 'due'>,
  isOut: boolean,
  byMs: number,
  limit: number,
): DueHost[] {
  const found: DueHost[] = []
  const { from, to } = keys.dueRange(isOut, byMs)
  for (const [key, value] of stores.due.range(from, to, { limit })) {
    found.push({
      host: keys.dueKeyHost(key),
      dueAt: keys.dueKeyTime(key),
      frontClass: value[0] ?? 0,
    })
  }
  return found
}

/**
 * The order in which due hosts are served: by class, then by how long they are due; every 16th is the one that is due
 * longest of all lower classes, so none starves. `turns` counts what was served before.
 */
export function serveOrder(hosts: readonly DueHost[], turns: number): DueHost[] {
  const byClass = hosts.toSorted((a, b) => a.frontClass - b.frontClass || a.dueAt - b.dueAt)
  const byAge = hosts.toSorted((a, b) => a.dueAt - b.dueAt || a.frontClass - b.frontClass)
  const served = new Set<DueHost>()
  const order: DueHost[] = []
  let front = 0
  let oldest = 0
  while (order.length < hosts.length) {
    while (front < byClass.length && served.has(byClass[front]!)) front++
    let next = byClass[front]!
    if ((turns + order.length + 1) % fairPick === 0) {
      while (oldest < byAge.length && served.has(byAge[oldest]!)) oldest++
      const lower = byAge.slice(oldest).find((h) => h.frontClass > next.frontClass && !served.has(h))
      next = lower ?? next
    }
    served.add(next)
    order.push(next)
  }
  return order
}
