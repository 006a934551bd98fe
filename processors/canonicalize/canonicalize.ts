import { readLinks } from '../../schemas/links.ts'
import {
  type Candidate,
  type Control,
  type Decision,
  type DiscoveredUrls,
  type LinkKind,
  linkFlags,
} from '../../schemas/types.ts'
import type { KeyValueStore, Processor, ProcessorContext, ProcessorSupplier } from '../../topology/streams/types.ts'
import { createRecentCache } from '../cache.ts'
import { createReasonCounts } from '../reasons.ts'
import { siteOf } from '../site.ts'
import { createParameterFilter } from './parameters.ts'
import { createRefusals } from './refusals.ts'
import { hasRefused, type StoredRule, storedRules } from './rules-store.ts'
import { isScopeRule, judgeScope, type Scope, scopeHostPrefix, scopeKey, scopeOf, wideningOf } from './scope.ts'
import { type CanonicalUrl, createUrlResolver, type UrlErrorCode } from './url.ts'

export interface CanonicalizeOptions {
  /** The topic that is read again when a rule widens the scope. */
  readonly discoveredTopic: string
  /** 2,048 by default. */
  readonly maxUrlLength?: number
  /** Keys remembered as admitted lately; 65,536 by default. */
  readonly recentUrls?: number
  /** Hosts that are never admitted, with all below them. */
  readonly blockedDomains?: readonly string[]
  /** Query parameters that go besides the built-in ones; a final `*` stands for any ending. */
  readonly extraParameters?: readonly string[]
  /** Told when a seed's redirect takes a host into the scope; again if the commit that says so is done again. */
  readonly onWidened?: (host: string, why: string) => void
}

/** Why a link was not passed on, or that it was. Each link of a source record has exactly one. */
export type LinkVerdict =
  | UrlErrorCode
  | 'nofollow'
  | 'redirect-chain'
  | 'blocked-domain'
  | 'out-of-scope'
  | 'repeat-cache'
  | 'admitted'

/** A chain of redirects is followed as far as browsers follow one; nothing else would end one that never repeats. */
const maxHops = 20
/** So far a seed's redirects may lead into other hosts: `http`, `https`, `www` and a move or two. */
const maxSeedHops = 5

type Output = Candidate | Decision | Control

/**
 * Links as found → candidates in scope. Reads `discovered-urls` and `controls`; forwards to the children
 * `canonicalized`, `decisions` (one a source record, its counts add up to the links looked at) and `controls` (a host
 * that a seed redirects to). State: the rules, in `rules`. A cache drops repeats and is empty after `init`, so a replay
 * may differ by repeats alone.
 */
export function createCanonicalize(
  options: CanonicalizeOptions,
): ProcessorSupplier<string, DiscoveredUrls | Control, string, Output> {
  const urlOptions = {
    filter: createParameterFilter(options.extraParameters),
    ...(options.maxUrlLength === undefined ? {} : { maxUrlLength: options.maxUrlLength }),
  }
  const blocked = new Set(options.blockedDomains?.map((domain) => domain.toLowerCase()))

  return (context: ProcessorContext<string, Output>): Processor<string, DiscoveredUrls | Control> => {
    /** Canonical key → least depth it was admitted with. */
    const recent = createRecentCache<number>(options.recentUrls ?? 65_536)
    const refusals = createRefusals()
    /** Hosts whose rule was written and has not come back yet. */
    const announced = new Set<string>()
    let store: KeyValueStore<string, StoredRule>
    let scope: Scope

    function onRule(key: string, rule: Control | null): void {
      const stored = store.get(key) as Control | undefined
      if (rule === null) {
        if (stored === undefined) return
        store.delete(key)
        announced.clear()
      } else {
        const merged = stored === undefined ? rule : merge(key, stored, rule)
        if (merged === stored) return
        store.put(key, merged)
      }
      const before = scope
      scope = scopeOf(storedRules(store))
      const widening = wideningOf(before, scope)
      if (!refusals.mayHold(widening)) return
      recent.clear()
      refusals.reset(true)
      store.delete(hasRefused)
      context.seekToBeginning(options.discoveredTopic)
    }

    function onLinks(page: DiscoveredUrls, timestamp: number): void {
      const base = page.baseUrl === '' ? undefined : (URL.parse(page.baseUrl) ?? undefined)
      const resolve = createUrlResolver(base, urlOptions)
      const counts = createReasonCounts()
      let refusedByRules = false

      const judge = (kind: LinkKind, flags: number, href: string): LinkVerdict => {
        if ((flags & linkFlags.nofollow) !== 0) return 'nofollow'
        if (page.hops > maxHops) return 'redirect-chain'
        const target = resolve(href)
        if ('error' in target) return target.error.code
        const known = recent.get(target.key)
        if (known !== undefined && known <= page.depth) return 'repeat-cache'
        const { key, fetchUrl, host, port } = target
        if (isBlocked(blocked, host)) return 'blocked-domain'
        const site = siteOf(host)
        const seedChain = (flags & linkFlags.seedChain) !== 0 && page.hops <= maxSeedHops
        const verdict = judgeScope(scope, host, site, port)
        if (verdict !== 'admitted') {
          if (!seedChain || kind !== 'redirect') {
            refusals.add(host, site, port)
            refusedByRules = true
            return verdict
          }
          announce(target, site, page.source, timestamp)
        }
        recent.set(key, page.depth)
        context.forward(
          {
            key,
            value: {
              fetchUrl,
              host,
              site,
              source: page.source,
              depth: page.depth,
              hops: page.hops,
              linkKind: kind,
              entryKind: 'page',
              seedChain: seedChain || kind === 'seed',
              improved: false,
            },
          },
          'canonicalized',
        )
        return 'admitted'
      }

      const blob = page.links
      readLinks(blob, (kind, flags, start, end) => {
        const href = Buffer.prototype.utf8Slice.call(blob, start, end)
        counts.add(judge(kind, flags, href), href)
      })
      if (refusedByRules && store.get(hasRefused) === undefined) store.put(hasRefused, true)
      if (counts.total === 0) return
      const decision: Decision = {
        processor: 'canonicalize',
        fetchId: page.fetchId === '' ? null : page.fetchId,
        total: counts.total,
        reasons: counts.list(),
        evidence: page.excessCount > 0 ? `${page.excessCount} links over the bound were not kept` : null,
        at: timestamp,
      }
      context.forward({ key: page.source, value: decision }, 'decisions')
    }

    /** The host that a seed redirects to joins the scope: a rule for all tasks, this one too, when it comes back. */
    function announce({ host, port }: CanonicalUrl, site: string, source: string, at: number): void {
      const name = `${host}:${port}`
      if (announced.has(name)) return
      if (announced.size >= maxAnnounced) announced.clear()
      announced.add(name)
      const rule: Control = {
        kind: 'scope-host',
        mode: scope.mode ?? 'host',
        host,
        site,
        ports: port === 80 || port === 443 ? [] : [port],
        why: `redirect of seed ${source}`,
        at,
      }
      context.forward({ key: scopeHostPrefix + host, value: rule }, 'controls')
      options.onWidened?.(host, rule.why)
    }

    return {
      init() {
        store = context.getStateStore<string, StoredRule>('rules')
        scope = scopeOf(storedRules(store))
        recent.clear()
        announced.clear()
        refusals.reset(store.get(hasRefused) === undefined)
      },
      process(record) {
        const { key, value } = record
        if (value === null ? isScopeRule(key) : !('links' in value)) {
          // A rule of a kind that this version does not know is no rule of scope.
          if (isScopeRule(key)) onRule(key, value as Control | null)
        } else if (value !== null) {
          try {
            onLinks(value as DiscoveredUrls, record.timestamp)
          } catch (error) {
            // What this record forwarded is taken back, so the caches must not say that it was sent.
            recent.clear()
            announced.clear()
            throw error
          }
        }
      },
    }
  }
}

/** Forgetting means that a rule is written twice, which changes nothing. */
const maxAnnounced = 10_000

/** Returns `stored` itself when nothing is new. Ports of a host add up: two writers must not take from each other. */
function merge(key: string, stored: Control, rule: Control): Control {
  const ports = key === scopeKey ? rule.ports : [...new Set([...stored.ports, ...rule.ports])]
  const same =
    (key !== scopeKey || stored.mode === rule.mode) &&
    stored.host === rule.host &&
    stored.site === rule.site &&
    ports.length === stored.ports.length &&
    ports.every((port) => stored.ports.includes(port))
  return same ? stored : { ...rule, ports }
}

function isBlocked(blocked: ReadonlySet<string>, host: string): boolean {
  if (blocked.size === 0) return false
  for (let at = 0; ; ) {
    if (blocked.has(host.slice(at))) return true
    at = host.indexOf('.', at) + 1
    if (at === 0) return false
  }
}
