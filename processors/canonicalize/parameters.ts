/**
 * Query parameters that say where a click came from or which session it belongs to, never which document is meant.
 * Lower case; a final `*` stands for any ending. Each name is one that its issuer documents as a click or campaign id,
 * so that no document is lost: words with a second use (`ref`, `source`, `id`) are not here.
 */
export const trackingParameters: readonly string[] = [
  'utm_*',
  'gclid',
  'gclsrc',
  'dclid',
  'gbraid',
  'wbraid',
  'srsltid',
  '_ga',
  '_gl',
  '_gac',
  'fbclid',
  'fb_action_ids',
  'fb_action_types',
  'fb_ref',
  'fb_source',
  'msclkid',
  'twclid',
  'ttclid',
  'li_fat_id',
  'igshid',
  'epik',
  'yclid',
  'ysclid',
  '_openstat',
  'mc_cid',
  'mc_eid',
  'mkt_tok',
  'hsa_*',
  '_hsenc',
  '_hsmi',
  '__hssc',
  '__hstc',
  '__hsfp',
  'hsctatracking',
  'mtm_*',
  'matomo_*',
  'pk_campaign',
  'pk_kwd',
  'pk_source',
  'pk_medium',
  'piwik_campaign',
  'piwik_kwd',
  'oly_anon_id',
  'oly_enc_id',
  'rb_clickid',
  'vero_conv',
  'vero_id',
  'wickedid',
]

/** Session identifiers by their name alone. */
export const sessionParameters: readonly string[] = ['jsessionid', 'phpsessid', 'aspsessionid*']

/** Names that are used for other things too: gone only when the value looks like a session identifier. */
export const ambiguousSessionParameters: readonly string[] = [
  'sid',
  'sessid',
  'sessionid',
  'session_id',
  'oscsid',
  'zenid',
]

/** True = the parameter is to go. `name` and `value` with percent-escapes normalized; any case. */
export type ParameterFilter = (name: string, value: string) => boolean

/** The built-in lists and `extra`, in the same notation. */
export function createParameterFilter(extra: readonly string[] = []): ParameterFilter {
  const exact = new Set<string>()
  const prefixes: string[] = []
  for (const pattern of [...trackingParameters, ...sessionParameters, ...extra]) {
    const name = pattern.toLowerCase()
    if (name.endsWith('*')) prefixes.push(name.slice(0, -1))
    else exact.add(name)
  }
  const ambiguous = new Set(ambiguousSessionParameters)

  return (name, value) => {
    const lower = name.toLowerCase()
    if (exact.has(lower)) return true
    for (const prefix of prefixes) if (lower.startsWith(prefix)) return true
    return ambiguous.has(lower) && sessionValue.test(value)
  }
}

// Eight or more hexadecimal digits that are no plain number (`sid=1234567` is an article), or PHP's 26 characters of 5
// bits with at least one digit.
const sessionValue = /^(?:(?![1-9][0-9]*$)[0-9a-f]{8,128}|(?=[a-z]*[0-9])[0-9a-v]{26})$/i
