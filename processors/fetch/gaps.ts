/** When a host's last response ended, by both clocks. */
export interface LastResponse {
  readonly endedAtMs: number
  readonly endedMonotonicMs: number
}

/** What this fetcher remembers of the hosts it asked last, so that gaps are measured by one monotonic clock. */
export interface Gaps {
  ended(host: string, at: LastResponse): void
  /** The host's last response, if this fetcher had it and `lastEndedAt` knows of no later one. */
  last(host: string, lastEndedAt: number): LastResponse | undefined
}

export function createGaps(maxHosts: number): Gaps {
  const hosts = new Map<string, LastResponse>()
  return {
    ended(host, at) {
      hosts.delete(host)
      hosts.set(host, at)
      if (hosts.size <= maxHosts) return
      for (const oldest of hosts.keys()) {
        hosts.delete(oldest)
        break
      }
    },
    last(host, lastEndedAt) {
      const known = hosts.get(host)
      return known !== undefined && known.endedAtMs >= lastEndedAt ? known : undefined
    },
  }
}
