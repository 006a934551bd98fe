/** `ok` has every A and AAAA address. Addresses are textual, without zone or brackets. */
export type DnsResult =
  | {
      readonly kind: 'ok'
      readonly addresses: readonly string[]
      readonly ttlMs: number
    }
  | {
      readonly kind: 'error'
      readonly error: 'nxdomain' | 'servfail' | 'timeout'
      readonly message: string
    }

/** The Resolver port. `done` is called exactly once, never from within `resolve` itself. */
export interface Resolver {
  resolve(host: string, done: (result: DnsResult) => void): void
  close(): void
}
