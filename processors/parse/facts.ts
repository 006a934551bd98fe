import { createDirectivesCollector, type Directives, type DirectivesCollector } from './directives.ts'
import { headerValues, parseLinkHeader } from './headers.ts'
import { cleanHref, createLinkCollector, hasToken, refreshTarget, type WrittenLinks } from './links.ts'

/** What markup and headers say about a page, besides its text. */
export interface PageFacts extends WrittenLinks {
  readonly baseUrl: string
  readonly title: string | null
  readonly description: string | null
  readonly language: string | null
  readonly directives: Directives
  readonly canonicalUrl: string | null
}

export interface FactsSource {
  readonly url: string
  readonly headers: readonly (readonly [string, string])[]
  readonly agentToken: string
}

/** Takes elements in document order; attribute values are decoded, null = absent. */
export interface FactsCollector {
  begin(source: FactsSource): void
  /** Whether `title` would still count: the first title of the page does. */
  readonly wantsTitle: boolean
  title(text: string): void
  language(tag: string): void
  base(href: string): void
  /** The href is page[start..end), not decoded. */
  anchor(page: Buffer, start: number, end: number, rel: string | null): void
  frame(src: string): void
  link(href: string, rel: string, isTranslation: boolean): void
  meta(name: string | null, httpEquiv: string | null, content: string): void
  end(): PageFacts
}

/** Canonical links looked at; a page that has more than one kind of them is not believed anyway. */
const maxCanonicals = 16

export function createFactsCollector(): FactsCollector {
  const links = createLinkCollector()
  let source: FactsSource
  let directives: DirectivesCollector
  let base: string | undefined
  let title: string | undefined
  let description: string | undefined
  let socialDescription: string | undefined
  let language: string | undefined
  let canonicals: string[] = []

  return {
    begin(from) {
      source = from
      directives = createDirectivesCollector(from.agentToken)
      links.reset()
      base = title = description = socialDescription = language = undefined
      canonicals = []
      for (const value of headerValues(from.headers, 'x-robots-tag')) directives.header(value)
      for (const value of headerValues(from.headers, 'link')) readLinkHeader(value)
      for (const value of headerValues(from.headers, 'refresh')) refresh(value, from.url)
    },
    get wantsTitle() {
      return title === undefined
    },
    title(text) {
      title ??= text
    },
    language(tag) {
      language ??= tag
    },
    base(href) {
      base ??= href
    },
    anchor(page, start, end, rel) {
      links.addRaw('anchor', page, start, end, rel !== null && hasToken(rel, 'nofollow'))
    },
    frame(src) {
      links.add('frame', src, false)
    },
    link(href, rel, isTranslation) {
      if (hasToken(rel, 'canonical')) addCanonical(href)
      else if (hasToken(rel, 'alternate')) {
        if (isTranslation) links.add('alternate', href, false)
      } else if (hasToken(rel, 'next') || hasToken(rel, 'prev')) links.add('anchor', href, false)
    },
    meta(name, httpEquiv, content) {
      if (httpEquiv !== null && httpEquiv.trim().toLowerCase() === 'refresh') refresh(content)
      if (name === null) return
      directives.meta(name, content)
      const key = name.trim().toLowerCase()
      if (content.trim() === '') return
      if (key === 'description') description ??= content
      else if (key === 'og:description') socialDescription ??= content
    },
    end() {
      const baseUrl = resolveBase()
      const canonicalUrl = agreedCanonical(baseUrl)
      if (canonicalUrl !== null) for (const href of canonicals) links.add('canonical', href, false)
      return {
        ...links.write(directives.found.nofollow),
        baseUrl,
        title: title ?? null,
        description: description ?? socialDescription ?? null,
        language: language ?? headerValues(source.headers, 'content-language')[0] ?? null,
        directives: directives.found,
        canonicalUrl,
      }
    },
  }

  /** Targets of headers are relative to the page itself, whatever its base element says. */
  function readLinkHeader(value: string): void {
    for (const { target, rel, params } of parseLinkHeader(value)) {
      const url = httpUrl(target, source.url)
      // An anchor parameter makes it a statement about another page (RFC 8288, 3.2).
      if (url === undefined || params.has('anchor')) continue
      if (rel.includes('canonical')) addCanonical(url)
      else if (rel.includes('alternate') && params.has('hreflang')) links.add('alternate', url, false)
    }
  }

  function refresh(content: string, against?: string): void {
    const target = refreshTarget(content)
    const url = target === undefined || against === undefined ? target : httpUrl(target, against)
    if (url !== undefined) links.add('refresh', url, false)
  }

  function addCanonical(href: string): void {
    if (canonicals.length < maxCanonicals && cleanHref(href) !== '') canonicals.push(href)
  }

  /** HTML 4.2.3: the first base element with a href counts, against the page's own URL; unusable ones are as none. */
  function resolveBase(): string {
    if (base === undefined) return source.url
    const url = URL.parse(base, source.url)
    return url === null || url.protocol === 'data:' || url.protocol === 'javascript:' ? source.url : url.href
  }

  /** RFC 6596 wants one; pages that name several different ones contradict themselves, and none is believed. */
  function agreedCanonical(baseUrl: string): string | null {
    let agreed: string | null = null
    for (const href of canonicals) {
      const url = httpUrl(href, baseUrl)
      if (url === undefined) continue
      if (agreed !== null && agreed !== url) return null
      agreed = url
    }
    return agreed
  }
}

/** Absolute and without fragment; undefined unless it is http or https. */
function httpUrl(href: string, base: string): string | undefined {
  const url = URL.parse(href, base)
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) return undefined
  url.hash = ''
  return url.href
}
