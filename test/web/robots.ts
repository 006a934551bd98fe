import type { Random } from './random.ts'

/** The robots.txt of a host and what it means to a crawler that no group names. */
export interface RobotsPlan {
  /** Where the text is: `/robots.txt`, or what that redirects to. */
  readonly path: string
  readonly status: number
  readonly body: Buffer
  /** The usual rules hold: /private/ (but for /private/open-), *.cgi, /find?. */
  readonly rules: boolean
  /** Nothing may be fetched. */
  readonly closed: boolean
  readonly crawlDelayMs: number
}

/** Shares as on the web at large: a third of hosts have none, most others forbid a few places. */
export function pickRobots(
  random: Random,
  host: string,
  mustBeOpen: boolean,
  crawlDelays: readonly number[],
): RobotsPlan {
  const plan = (over: Partial<RobotsPlan>): RobotsPlan => ({
    path: '/robots.txt',
    status: 200,
    body: Buffer.alloc(0),
    rules: false,
    closed: false,
    crawlDelayMs: 0,
    ...over,
  })
  const delaySec = random.pick(crawlDelays)
  const style = random.next()
  let u = random.next()
  if ((u -= 0.33) < 0) return plan({ status: 404, body: Buffer.from('Not Found\n') })
  if ((u -= 0.03) < 0) return plan({ status: 403, body: Buffer.from('Forbidden\n') })
  if ((u -= 0.12) < 0) return plan({ body: text(['User-agent: *', 'Disallow:'], style) })
  if ((u -= 0.03) < 0 && !mustBeOpen)
    return plan({
      closed: true,
      body: text(['User-agent: *', 'Disallow: /'], style),
    })
  if ((u -= 0.06) < 0)
    return plan({
      path: '/policy/robots.txt',
      rules: true,
      body: text(usual(host, null), style),
    })
  if ((u -= 0.15) < 0) {
    return plan({
      rules: true,
      crawlDelayMs: delaySec * 1_000,
      body: text(usual(host, delaySec), style),
    })
  }
  return plan({ rules: true, body: text(usual(host, null), style) })
}

function usual(host: string, crawlDelaySec: number | null): string[] {
  return [
    `# ${host}`,
    'User-agent: otherbot',
    'Disallow: /',
    '',
    'User-agent: *',
    ...(crawlDelaySec === null ? [] : [`Crawl-delay: ${crawlDelaySec}`]),
    'Disallow: /private/  # but see below',
    'Allow: /private/open-',
    'disallow:/*.cgi$',
    'Disallow: /find?',
  ]
}

function text(lines: readonly string[], style: number): Buffer {
  const ending = style < 0.2 ? '\r\n' : '\n'
  const mark = style > 0.9 ? '\uFEFF' : ''
  return Buffer.from(mark + lines.join(ending) + ending)
}
