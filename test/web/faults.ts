import type { Random } from './random.ts'

/** What goes wrong with one URL. All but the slow ones pass after `times` requests. */
export type UrlFault =
  | {
      readonly kind: 'status'
      readonly status: number
      readonly times: number
      readonly retryAfterSec: number | null
      readonly form: 'seconds' | 'date'
    }
  | {
      readonly kind: 'reset'
      readonly when: 'before-headers' | 'mid-body'
      readonly times: number
    }
  /** The body drips for five minutes. */
  | { readonly kind: 'drip'; readonly times: number }
  | { readonly kind: 'slow-headers' | 'slow-body'; readonly ms: number }

export interface HostFaults {
  /** Of robots.txt. */
  readonly robots: UrlFault | null
  /** Connections are refused in this window, milliseconds since the web began. */
  readonly down: { readonly fromMs: number; readonly toMs: number } | null
  readonly dns: {
    readonly error: 'servfail' | 'timeout' | 'nxdomain'
    readonly times: number
  } | null
}

/** Shares between 0 and 1: of pages, and of hosts for the host's own. */
export interface FaultRates {
  readonly pageStatus: number
  readonly pageReset: number
  readonly pageDrip: number
  readonly pageSlow: number
  readonly robots: number
  readonly down: number
  readonly dns: number
  /** A first answer of NXDOMAIN: a crawler looks again after a day or so, hence not among the standard faults. */
  readonly nxdomain: number
}

export const noFaultRates: FaultRates = {
  pageStatus: 0,
  pageReset: 0,
  pageDrip: 0,
  pageSlow: 0,
  robots: 0,
  down: 0,
  dns: 0,
  nxdomain: 0,
}

/** Everything passes in time: a crawler that tries again gets every page. */
export const standardFaultRates: FaultRates = {
  pageStatus: 0.025,
  pageReset: 0.01,
  pageDrip: 0.003,
  pageSlow: 0.02,
  robots: 0.15,
  down: 0.1,
  dns: 0.1,
  nxdomain: 0,
}

export function pickHostFaults(random: Random, rates: FaultRates): HostFaults {
  const fromMs = random.between(0, 60_000)
  const down = random.chance(rates.down) ? { fromMs, toMs: fromMs + random.between(30_000, 600_000) } : null
  let robots: UrlFault | null = null
  if (random.chance(rates.robots)) {
    robots = random.chance(0.6) ? statusFault(random, [503]) : { kind: 'reset', when: 'before-headers', times: 1 }
  }
  let dns: HostFaults['dns'] = null
  if (random.chance(rates.nxdomain)) dns = { error: 'nxdomain', times: 1 }
  else if (random.chance(rates.dns)) {
    dns = {
      error: random.chance(0.75) ? 'servfail' : 'timeout',
      times: 1 + random.int(2),
    }
  }
  return { robots, down, dns }
}

export function pickPageFault(random: Random, rates: FaultRates): UrlFault | null {
  let u = random.next()
  if ((u -= rates.pageStatus) < 0) return statusFault(random, [500, 502, 503, 503, 503, 429])
  if ((u -= rates.pageReset) < 0) {
    return {
      kind: 'reset',
      when: random.chance(0.5) ? 'before-headers' : 'mid-body',
      times: 1,
    }
  }
  if ((u -= rates.pageDrip) < 0) return { kind: 'drip', times: 1 }
  if ((u -= rates.pageSlow) < 0) {
    return {
      kind: random.chance(0.5) ? 'slow-headers' : 'slow-body',
      ms: random.between(2_000, 8_000),
    }
  }
  return null
}

function statusFault(random: Random, statuses: readonly number[]): UrlFault {
  const status = random.pick(statuses)
  const asks = (status === 503 || status === 429) && random.chance(0.7)
  return {
    kind: 'status',
    status,
    times: 1 + random.int(2),
    retryAfterSec: asks ? 2 + random.int(120) : null,
    form: random.chance(0.5) ? 'seconds' : 'date',
  }
}
