import type { Control } from '../../schemas/types.ts'
import { siteOf } from '../site.ts'
import { canonicalizeUrl, type UrlErrorCode, type UrlOptions } from './url.ts'

/** Key → rule, as in `controls`: `scope` and `scope-host:<host>`. */
export type Rules = Iterable<readonly [string, Control]>

/** What the rules say together; a union, so their order does not matter. */
export interface Scope {
  /** Null until the record `scope` is there: nothing is admitted before. */
  readonly mode: Control['mode'] | null
  /** Listed hosts, and the sites of these. */
  readonly hosts: ReadonlySet<string>
  readonly sites: ReadonlySet<string>
  /** Always with 80 and 443. */
  readonly ports: ReadonlySet<number>
}

export type ScopeVerdict = 'admitted' | 'out-of-scope' | 'port'

export const scopeKey = 'scope'
export const scopeHostPrefix = 'scope-host:'

export function isScopeRule(key: string): boolean {
  return key === scopeKey || key.startsWith(scopeHostPrefix)
}

export function scopeOf(rules: Rules): Scope {
  let mode: Scope['mode'] = null
  const hosts = new Set<string>()
  const sites = new Set<string>()
  const ports = new Set([80, 443])
  for (const [key, rule] of rules) {
    for (const port of rule.ports) ports.add(port)
    if (key === scopeKey) mode = rule.mode
    else {
      const host = rule.host ?? key.slice(scopeHostPrefix.length)
      hosts.add(host)
      sites.add(rule.site ?? siteOf(host))
    }
  }
  return { mode, hosts, sites, ports }
}

export function judgeScope(scope: Scope, host: string, site: string, port: number): ScopeVerdict {
  const inScope =
    scope.mode === 'any' ||
    (scope.mode === 'host' && scope.hosts.has(host)) ||
    (scope.mode === 'domain' && scope.sites.has(site))
  if (!inScope) return 'out-of-scope'
  return scope.ports.has(port) ? 'admitted' : 'port'
}

export interface ScopeExplanation {
  readonly admitted: boolean
  readonly code: ScopeVerdict | UrlErrorCode
  /** Key of the rule that admits; null where none does. */
  readonly rule: string | null
  readonly message: string
}

/** Says for people whether the rules admit a URL, by which of them, or what is missing. */
export function explainScope(rules: Rules, url: string, options?: UrlOptions): ScopeExplanation {
  const list = [...rules]
  const target = canonicalizeUrl(url, undefined, options)
  if ('error' in target) return { admitted: false, rule: null, ...target.error }
  const scope = scopeOf(list)
  const site = siteOf(target.host)
  const code = judgeScope(scope, target.host, site, target.port)
  if (code === 'port') {
    const message = `port ${target.port} is not among ${[...scope.ports].sort((a, b) => a - b).join(', ')}`
    return { admitted: false, code, rule: null, message }
  }
  if (code === 'out-of-scope') {
    const message =
      scope.mode === null
        ? 'the crawl has no scope yet'
        : `scope is ${scope.mode}: ${scope.mode === 'host' ? `${target.host} is not listed` : `no listed host is of ${site}`}`
    return { admitted: false, code, rule: null, message }
  }
  if (scope.mode === 'any') return { admitted: true, code, rule: scopeKey, message: 'scope is any' }
  const [rule, control] = list.find(([key, { host: listed, site: listedSite }]) => {
    if (key === scopeKey) return false
    const host = listed ?? key.slice(scopeHostPrefix.length)
    return scope.mode === 'host' ? host === target.host : (listedSite ?? siteOf(host)) === site
  })!
  return { admitted: true, code, rule, message: `scope is ${scope.mode}: ${rule} (${control.why})` }
}

/** What a changed scope admits that the former one refused. */
export interface Widening {
  /** The mode itself: anything refused may now be admitted. */
  readonly all: boolean
  readonly hosts: readonly string[]
  readonly sites: readonly string[]
  readonly ports: readonly number[]
}

export function wideningOf(before: Scope, after: Scope): Widening {
  const rank = { host: 1, domain: 2, any: 3 }
  const added = <T>(now: ReadonlySet<T>, then: ReadonlySet<T>): T[] => [...now].filter((item) => !then.has(item))
  return {
    all: after.mode !== null && (before.mode === null || rank[after.mode] > rank[before.mode]),
    hosts: after.mode === 'host' ? added(after.hosts, before.hosts) : [],
    sites: after.mode === 'domain' ? added(after.sites, before.sites) : [],
    ports: added(after.ports, before.ports),
  }
}
