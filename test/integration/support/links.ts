import { type DefaultTreeAdapterMap, parse } from 'parse5'

type Node = DefaultTreeAdapterMap['node']

/**
 * Where the `a` and `area` elements of a page lead: absolute http and https URLs without fragment, in document order,
 * each once. Resolved as a browser does: against the first `base` with an href, and the page's URL.
 */
export function pageLinks(html: string, pageUrl: string): string[] {
  const document = parse(html)
  const base = findBase(document)
  const baseUrl = (base === undefined ? null : URL.parse(base, pageUrl))?.href ?? pageUrl
  const links = new Set<string>()
  const walk = (node: Node): void => {
    if ('tagName' in node && (node.tagName === 'a' || node.tagName === 'area')) {
      const href = attribute(node, 'href')
      const url = href === undefined ? null : URL.parse(href, baseUrl)
      if (url !== null && (url.protocol === 'http:' || url.protocol === 'https:')) {
        url.hash = ''
        links.add(url.href)
      }
    }
    if ('childNodes' in node) for (const child of node.childNodes) walk(child)
  }
  walk(document)
  return [...links]
}

function findBase(node: Node): string | undefined {
  if ('tagName' in node && node.tagName === 'base') {
    const href = attribute(node, 'href')
    if (href !== undefined) return href
  }
  if ('childNodes' in node) {
    for (const child of node.childNodes) {
      const found = findBase(child)
      if (found !== undefined) return found
    }
  }
  return undefined
}

function attribute(element: DefaultTreeAdapterMap['element'], name: string): string | undefined {
  return element.attrs.find((attr) => attr.name === name)?.value
}
