import type { Widening } from './scope.ts'

/**
 * What the rules refused since links were last read from the start, so that a new rule that admits nothing of it does
 * not cause the links to be read again. Bounded: past the bound, or when it was not there from the beginning, it
 * answers that anything may have been refused.
 */
export interface Refusals {
  add(host: string, site: string, port: number): void
  mayHold(widening: Widening): boolean
  /** `known` false: links were refused that are not in here. */
  reset(known: boolean): void
}

export function createRefusals(maxEntries = 50_000): Refusals {
  const hosts = new Set<string>()
  const sites = new Set<string>()
  const ports = new Set<number>()
  let known = true

  function reset(isKnown: boolean): void {
    hosts.clear()
    sites.clear()
    ports.clear()
    known = isKnown
  }

  return {
    add(host, site, port) {
      if (!known) return
      if (hosts.size >= maxEntries && !hosts.has(host)) {
        reset(false)
        return
      }
      hosts.add(host)
      sites.add(site)
      ports.add(port)
    },
    mayHold(widening) {
      const { all, hosts: newHosts, sites: newSites, ports: newPorts } = widening
      if (!known) return all || newHosts.length > 0 || newSites.length > 0 || newPorts.length > 0
      return (
        (all && hosts.size > 0) ||
        newHosts.some((host) => hosts.has(host)) ||
        newSites.some((site) => sites.has(site)) ||
        newPorts.some((port) => ports.has(port))
      )
    },
    reset,
  }
}
