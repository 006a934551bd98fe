import type { Decision, DiscoveredUrls, Fetched, Parsed } from '../../schemas/types.ts'
import type { ParsedPage } from '../parse/page.ts'
import { headerValue, redirectTarget } from './headers.ts'
import {
  type Asked,
  answeredFetched,
  decisionOf,
  exchangeOf,
  failedFetched,
  fetchIdOf,
  type HttpFailed,
  type HttpResponse,
  pageLinks,
  parsedOf,
  redirectLink,
  setsCookie,
} from './records.ts'
import type { FetchSettings } from './types.ts'

export type SideRecord =
  | {
      readonly child: 'discovered-urls'
      readonly key: string
      readonly value: DiscoveredUrls
    }
  | { readonly child: 'parsed'; readonly key: string; readonly value: Parsed }
  | {
      readonly child: 'decisions'
      readonly key: string
      readonly value: Decision
    }

/** What one request gives to the log, in the order in which it is written. */
export interface Emission {
  readonly records: readonly SideRecord[]
  readonly fetched: { readonly key: string; readonly value: Fetched }
  /** Whether an archive record must be safe first. */
  readonly archived: boolean
  /** A robots redirect to follow now. */
  readonly hopTo?: string
}

/** Archives a response and makes its records. Throws what the archive throws. */
export function emissionOf(
  settings: FetchSettings,
  asked: Asked,
  response: HttpResponse,
  canHop: boolean,
  nowMs: number,
): Emission {
  const exchange = exchangeOf(asked, response)
  const archive = settings.archive.append(exchange)
  settings.faults.hit('warc-written')
  const location = redirectTarget(response.status, response.headers, asked.url)
  const entry = asked.visit.urls[asked.index]!
  if (entry.entryKind === 'robots') {
    return robotsEmission(
      asked,
      answeredFetched(asked, response, {
        archive,
        exchange,
        page: null,
        location,
      }),
      {
        body: response.body,
        canHop,
      },
    )
  }
  const records: SideRecord[] = []
  const page = isPage(response) ? parsePage(settings, asked, response, records, nowMs) : null
  if (location !== null) records.push(redirected(asked, response, location, nowMs))
  const fetched = answeredFetched(asked, response, {
    archive,
    exchange,
    page,
    location,
  })
  return {
    records,
    fetched: { key: entry.key, value: fetched },
    archived: true,
  }
}

/** The record of a request without an answer. */
export function failureOf(asked: Asked, outcome: HttpFailed): Emission {
  const entry = asked.visit.urls[asked.index]!
  const fetched = failedFetched(asked, outcome)
  const record: Emission['fetched'] =
    entry.entryKind === 'robots'
      ? {
          key: `robots:${entry.fetchUrl}`,
          value: { ...fetched, outcomeKind: 'robots', url: entry.fetchUrl },
        }
      : { key: entry.key, value: fetched }
  return { records: [], fetched: record, archived: false }
}

function robotsEmission(
  asked: Asked,
  fetched: Fetched,
  { body, canHop }: { readonly body: Buffer; readonly canHop: boolean },
): Emission {
  const entry = asked.visit.urls[asked.index]!
  const target = fetched.location
  if (target !== null && canHop && staysOnHost(target, entry.fetchUrl)) {
    return {
      records: [],
      fetched: {
        key: `robots:${asked.url}`,
        value: { ...fetched, outcomeKind: 'robots', reason: 'hop' },
      },
      archived: true,
      hopTo: target,
    }
  }
  const ok = fetched.status >= 200 && fetched.status < 300
  return {
    records: [],
    fetched: {
      // The origin that was asked about gets the result, wherever its redirects led.
      key: `robots:${entry.fetchUrl}`,
      value: {
        ...fetched,
        outcomeKind: 'robots',
        url: entry.fetchUrl,
        robotsBody: ok ? body : null,
      },
    },
    archived: true,
  }
}

/** The same host on a port of its kind: hops elsewhere belong to the other host's own politeness. */
function staysOnHost(target: string, origin: string): boolean {
  const to = new URL(target)
  const from = new URL(origin)
  return (
    to.hostname === from.hostname &&
    (to.protocol === 'http:' || to.protocol === 'https:') &&
    (to.port === '' || to.port === from.port || to.port === '80' || to.port === '443')
  )
}

/** Whether there is a page in it. Which types are read is the parser's to say. */
function isPage({ status, truncated, body }: HttpResponse): boolean {
  return (status === 200 || status === 203) && truncated !== 'type' && body.length > 0
}

function parsePage(
  settings: FetchSettings,
  asked: Asked,
  response: HttpResponse,
  records: SideRecord[],
  nowMs: number,
): ParsedPage | null {
  const { key } = asked.visit.urls[asked.index]!
  try {
    const page = settings.parse({
      url: asked.url,
      headers: response.headers,
      body: response.body,
      contentType: headerValue(response.headers, 'content-type'),
      agentToken: settings.agentToken,
    })
    if (page === null) return null
    if (page.linkCount > 0)
      records.push({
        child: 'discovered-urls',
        key,
        value: pageLinks(asked, page),
      })
    const { extracted, failure } = extract(settings, asked, response, page)
    records.push({
      child: 'parsed',
      key,
      value: parsedOf(
        {
          url: asked.url,
          fetchId: fetchIdOf(asked),
          fetchedAt: Math.round(response.times.startedAtMs),
          parseVersion: settings.parseVersion,
          extracted,
        },
        page,
      ),
    })
    if (failure !== null) {
      records.push({
        child: 'decisions',
        key,
        value: decisionOf(asked, 'extract-failed', failure, nowMs),
      })
    }
    return page
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error)
    records.push({
      child: 'decisions',
      key,
      value: decisionOf(asked, 'parse-failed', text, nowMs),
    })
    return null
  }
}

/** A page whose fields cannot be read is a page all the same. */
function extract(
  settings: FetchSettings,
  asked: Asked,
  response: HttpResponse,
  page: ParsedPage,
): { extracted: Parsed['extracted']; failure: string | null } {
  try {
    const contentType = headerValue(response.headers, 'content-type')
    const extracted = settings.extract({
      host: asked.visit.host,
      contentType,
      body: response.body,
      charset: page.charset,
    })
    return { extracted, failure: null }
  } catch (error) {
    return { extracted: {}, failure: error instanceof Error ? error.message : String(error) }
  }
}

/** The target comes back as a link. To itself it cannot: without cookies the same request gives the same answer. */
function redirected(asked: Asked, response: HttpResponse, target: string, nowMs: number): SideRecord {
  const { key } = asked.visit.urls[asked.index]!
  if (target !== asked.url)
    return {
      child: 'discovered-urls',
      key,
      value: redirectLink(asked, target),
    }
  const evidence = setsCookie(response.headers)
    ? 'redirects to itself and sets a cookie; cookies are not kept'
    : 'redirects to itself'
  return {
    child: 'decisions',
    key,
    value: decisionOf(asked, 'redirect-to-self', evidence, nowMs),
  }
}
