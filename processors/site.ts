import { getDomain } from 'tldts'
import { createRecentCache } from './cache.ts'

/**
 * The registrable domain of a hostname by the public suffix list with its private section (`a.b.github.io` →
 * `b.github.io`). An IP literal, a public suffix and a name without suffix are their own site.
 */
export function siteOf(host: string): string {
  const known = memo.get(host)
  if (known !== undefined) return known
  const site = getDomain(host, suffixOptions) ?? host
  memo.set(host, site)
  return site
}

/** The hostname of a URL as the platform's `URL` serializes it (IPv6 in brackets). Throws TypeError on no URL. */
export function hostOf(url: string): string {
  return new URL(url).hostname
}

/**
 * The site that a topic key belongs to: of a URL, `robots:URL`, `dns:HOST`, `visit:HOST` or a bare hostname. Other keys
 * (`seed:1`, `api:7`) belong to no site and stand for themselves.
 */
export function siteOfKey(key: string): string {
  const colon = key.indexOf(':')
  if (colon < 0) return key.includes('.') ? siteOf(key) : key
  switch (key.slice(0, colon)) {
    case 'http':
    case 'https':
      return siteOfUrl(key, key)
    case 'robots':
      return siteOfUrl(key.slice(colon + 1), key)
    case 'dns':
    case 'visit':
      return siteOf(key.slice(colon + 1))
    default:
      return key
  }
}

// A pure function's memory: it changes the cost of an answer, never the answer.
const memo = createRecentCache<string>(8_192)

const suffixOptions = { allowPrivateDomains: true, extractHostname: false, validateHostname: false }

function siteOfUrl(url: string, otherwise: string): string {
  const host = URL.parse(url)?.hostname
  return host === undefined || host === '' ? otherwise : siteOf(host)
}
