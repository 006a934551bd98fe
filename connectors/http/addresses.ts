import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/**
 * Whether an address is one of the public internet: global unicast and in none of IANA's special-purpose blocks
 * (RFC 6890 and the registries it founds). Everything that is not plainly an address (names, zones, brackets, octal or
 * short spellings) is not public.
 */
export function isPublicAddress(address: string): boolean {
  const version = isIP(address)
  if (version === 0 || address.includes('%')) return false
  if (version === 4) return ipaddr.IPv4.parse(address).range() === 'unicast'
  const ip = ipaddr.IPv6.parse(address)
  // An allow-list: only 2000::/3 is assigned for global unicast, so mapped (::ffff:0:0/96), translated (64:ff9b::/96),
  // unique local, link-local and all that may be assigned some day are out without being named.
  return ip.range() === 'unicast' && ip.match(globalUnicast) && !notPublic.some((block) => ip.match(block))
}

const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3')
/** Inside 2000::/3: protocol assignments with Teredo, ORCHID, benchmarking; documentation; 6to4, which embeds an IPv4. */
const notPublic = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20', '2620:4f:8000::/48'].map((block) =>
  ipaddr.IPv6.parseCIDR(block),
)
