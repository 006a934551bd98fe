import dns from 'node:dns'
import { isIP } from 'node:net'
import type { Clock } from '../clock/types.ts'
import type { DnsResult, Resolver } from './types.ts'

/** What is asked of the network; `node:dns` in use, a script in tests. */
export interface DnsQueries {
  /** Addresses of one family with their times to live, in seconds. */
  resolve(host: string, family: 4 | 6, done: (error: DnsFailure | null, answers: readonly DnsAnswer[]) => void): void
  /** The operating system's own way, which knows the hosts file. */
  lookup(host: string, done: (error: DnsFailure | null, addresses: readonly string[]) => void): void
  close(): void
}
export type DnsAnswer = { readonly address: string; readonly ttl: number }
export type DnsFailure = {
  readonly code?: string | undefined
  readonly message: string
}

export interface SystemResolverOptions {
  readonly clock: Clock
  /** Hosts remembered; the least recently used go first. */
  readonly maxEntries?: number
  /** Bounds on what the answers' times to live may say. */
  readonly minTtlMs?: number
  readonly maxTtlMs?: number
  /** How long a name that does not exist is remembered (RFC 2308). */
  readonly nxdomainTtlMs?: number
  /** How long a failure to get an answer is remembered: at most 5 min (RFC 2308 §7). */
  readonly failureTtlMs?: number
  readonly timeoutMs?: number
  readonly queries?: DnsQueries
}

/** Of names that need no server. */
const fixedTtlMs = 86_400_000
const maxAddresses = 64

/**
 * A caching resolver. Equal questions that are open share one query; A and AAAA are asked at once. `localhost` and names
 * under it are answered here with the loopback address (RFC 6761 §6.3), address literals with themselves.
 */
export function createSystemResolver(options: SystemResolverOptions): Resolver {
  const { clock, maxEntries = 65_536, minTtlMs = 30_000, maxTtlMs = 86_400_000 } = options
  const { nxdomainTtlMs = 300_000, failureTtlMs = 30_000, timeoutMs = 5_000 } = options
  const queries = options.queries ?? createNodeQueries(timeoutMs)
  const cache = new Map<string, { result: DnsResult; untilMs: number }>()
  const waiting = new Map<string, ((result: DnsResult) => void)[]>()

  function cached(host: string): DnsResult | undefined {
    const entry = cache.get(host)
    if (entry === undefined) return undefined
    cache.delete(host)
    const leftMs = entry.untilMs - clock.monotonicMs()
    if (leftMs <= 0) return undefined
    cache.set(host, entry)
    return entry.result.kind === 'ok' ? { ...entry.result, ttlMs: Math.floor(leftMs) } : entry.result
  }

  function remember(host: string, result: DnsResult): void {
    const ttlMs = result.kind === 'ok' ? result.ttlMs : result.error === 'nxdomain' ? nxdomainTtlMs : failureTtlMs
    cache.delete(host)
    cache.set(host, { result, untilMs: clock.monotonicMs() + ttlMs })
    for (const oldest of cache.keys()) {
      if (cache.size <= maxEntries) break
      cache.delete(oldest)
    }
  }

  return {
    resolve(name, done) {
      const host = name.toLowerCase().replace(/\.$/, '')
      const known = ownAnswer(host) ?? cached(host)
      if (known !== undefined) {
        clock.setTimer(0, () => done(known))
        return
      }
      const others = waiting.get(host)
      if (others !== undefined) {
        others.push(done)
        return
      }
      const asking = [done]
      waiting.set(host, asking)
      const clamp = (ttlMs: number): number => Math.min(maxTtlMs, Math.max(minTtlMs, ttlMs))
      let answered = false
      const answer = (result: DnsResult): void => {
        if (answered) return
        answered = true
        timer.cancel()
        waiting.delete(host)
        remember(host, result)
        // A turn later: an adapter may have answered at once.
        clock.setTimer(0, () => {
          for (const callback of asking) callback(result)
        })
      }
      // The last word, whatever the query does: it has its own, finer timeouts.
      const timer = clock.setTimer(timeoutMs * 3, () => answer(failure('timeout', `no answer for ${host}`)))
      ask(queries, host, clamp, answer)
    },
    close() {
      queries.close()
    },
  }
}

function ownAnswer(host: string): DnsResult | undefined {
  const literal = host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host
  if (isIP(literal) !== 0) return { kind: 'ok', addresses: [literal], ttlMs: fixedTtlMs }
  if (host === 'localhost' || host.endsWith('.localhost')) {
    return { kind: 'ok', addresses: ['127.0.0.1'], ttlMs: fixedTtlMs }
  }
  return undefined
}

/** Both families, then the operating system for names that DNS does not know. */
function ask(queries: DnsQueries, host: string, clamp: (ttlMs: number) => number, done: (r: DnsResult) => void): void {
  const errors: DnsFailure[] = []
  const answers: DnsAnswer[] = []
  let open = 2
  const one = (error: DnsFailure | null, got: readonly DnsAnswer[]): void => {
    if (error !== null) errors.push(error)
    answers.push(...got)
    if (--open > 0) return
    if (answers.length > 0) succeed()
    else fail()
  }
  const succeed = (): void => {
    const ttlSeconds = Math.min(...answers.map(({ ttl }) => ttl))
    done({
      kind: 'ok',
      addresses: unique(answers.map(({ address }) => address)),
      ttlMs: clamp(ttlSeconds * 1000),
    })
  }
  const fail = (): void => {
    // One family timed out and the other has no address: that is no proof that the name does not exist.
    const kind = errors.map(classify).find((k) => k !== 'nxdomain') ?? 'nxdomain'
    if (kind === 'timeout') {
      done(failure(kind, text(errors)))
      return
    }
    queries.lookup(host, (lookupError, addresses) => {
      if (lookupError === null && addresses.length > 0) {
        done({ kind: 'ok', addresses: unique(addresses), ttlMs: clamp(0) })
      } else {
        done(failure(kind, text(errors)))
      }
    })
  }
  queries.resolve(host, 4, one)
  queries.resolve(host, 6, one)
}

function unique(addresses: readonly string[]): string[] {
  return [...new Set(addresses)].slice(0, maxAddresses)
}

function text(errors: readonly DnsFailure[]): string {
  return errors[0]?.message ?? 'no address'
}

function failure(error: 'nxdomain' | 'servfail' | 'timeout', message: string): DnsResult {
  return { kind: 'error', error, message }
}

/** NODATA counts as NXDOMAIN: a name without addresses is no host. */
function classify({ code }: DnsFailure): 'nxdomain' | 'servfail' | 'timeout' {
  switch (code) {
    case 'ENOTFOUND':
    case 'ENODATA':
    case 'EBADNAME':
      return 'nxdomain'
    case 'ETIMEOUT':
    case 'ECANCELLED':
      return 'timeout'
    default:
      return 'servfail'
  }
}

function createNodeQueries(timeoutMs: number): DnsQueries {
  const resolver = new dns.Resolver({ timeout: timeoutMs, tries: 2 })
  return {
    resolve(host, family, done) {
      const finish = (error: Error | null, records: readonly dns.RecordWithTtl[] | undefined): void =>
        done(error, error === null ? (records ?? []) : [])
      if (family === 4) resolver.resolve4(host, { ttl: true }, finish)
      else resolver.resolve6(host, { ttl: true }, finish)
    },
    lookup(host, done) {
      dns.lookup(host, { all: true }, (error, found) => {
        done(error, error === null ? found.map(({ address }) => address) : [])
      })
    },
    close() {
      resolver.cancel()
    },
  }
}
