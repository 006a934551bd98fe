import { createRandom, type Random } from './random.ts'
import type { Site, SitePage } from './site.ts'
import { paragraphs, titleWords } from './text.ts'

/**
 * The HTML of a page: the same arguments give the same text. Links are spelled in the ways of real pages (absolute,
 * relative, without a scheme, with fragments, quoted or not), between things that look like links and are none.
 */
export function renderPage(site: Site, page: SitePage, seed: number, pageBytes: number, version: number): string {
  const random = createRandom(seed, 'html', site.host, page.textOf)
  const quote = random.pick(['"', '"', "'"])
  const title = titleWords(random, 2 + random.int(4))
  const bytes = pageBytes * random.between(0.6, 1.4)
  const base = !page.plainLinks && random.chance(0.05) ? '/' : null

  let out = `<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="${site.charset}">\n<title>${title}</title>\n`
  out += `<meta name="description" content="${titleWords(random, 8)}">\n`
  if (base !== null) out += `<base href="${base}">\n`
  if (!page.plainLinks && random.chance(0.4))
    out += `<link rel="canonical" href="${site.origin}${escapeAttribute(page.path)}">\n`
  if (bytes > 8_000) out += filler(random, bytes * 0.2)
  out += `</head>\n<body id="top">\n<!-- <a href="/comment-trap">not a link</a> -->\n`
  out += `<nav><a href="#top">Top</a> <a href="mailto:info@${site.host}">Mail</a> <a href="javascript:void(0)">Menu</a></nav>\n`

  const from = base ?? page.path
  let links = ''
  for (const target of page.links) {
    const href = page.plainLinks ? target.path : spell(random, site, from, target.path)
    links += `<li>${anchor(random, quote, href, titleWords(random, 2))}</li>\n`
  }
  for (const url of page.outside) links += `<li>${anchor(random, '"', url, titleWords(random, 2))}</li>\n`

  out += `<main><h1>${title}</h1>\n`
  if (version > 0)
    out += `<p>Edition ${version}: ${titleWords(createRandom(seed, 'edition', page.textOf, version), 12)}.</p>\n`
  const rest = Math.max(400, bytes - out.length - links.length - 60)
  out += paragraphs(random, rest * 0.7, page.editEvery, '<p>', '</p>\n')
  out += `<ul>\n${links}</ul>\n<h2>${titleWords(random, 3)}</h2>\n`
  out += paragraphs(random, rest * 0.3, page.editEvery, '<p>', '</p>\n')
  return `${out}</main>\n<footer>&copy; ${site.host} &middot; &eacute;dition</footer>\n</body>\n</html>\n`
}

function anchor(random: Random, quote: string, href: string, text: string): string {
  const style = random.next()
  const value = escapeAttribute(href)
  if (style < 0.05) return `<a href=${value} class=more>${text}</a>`
  if (style < 0.1) return `<A CLASS="more" HREF=${quote}${value}${quote}>${text}</A>`
  if (style < 0.15) return `<a class="more"\n   href = ${quote} ${value}\n${quote}><b>${text}</b></a>`
  return `<a href=${quote}${value}${quote}>${text}</a>`
}

/** One of the spellings that a browser resolves to `to`. */
function spell(random: Random, site: Site, from: string, to: string): string {
  const fragment = random.chance(0.08) ? `#part-${random.int(9)}` : ''
  const form = random.next()
  if (form < 0.45) return to + fragment
  if (form < 0.6) return site.origin + to + fragment
  if (form < 0.65) return `${site.origin.toUpperCase()}${to}${fragment}`
  if (form < 0.7) return `${site.origin.slice('http:'.length)}${to}${fragment}`
  if (form < 0.75) return `/./unused/..${to}${fragment}`
  return relative(from, to) + fragment
}

/** The shortest relative reference from one path to another, `./` for the directory itself. */
function relative(from: string, to: string): string {
  const here = (from.split('?', 1)[0] ?? '').split('/')
  const there = to.split('/')
  here.pop()
  let shared = 0
  const query = to.indexOf('?')
  const bareLength = (query === -1 ? to : to.slice(0, query)).split('/').length
  while (shared < here.length && shared < bareLength - 1 && here[shared] === there[shared]) shared++
  const up = '../'.repeat(here.length - shared)
  const down = there.slice(shared).join('/')
  return up + down === '' ? './' : up + down
}

/** Style and script as heavy pages have them, with a string that only looks like a link. */
function filler(random: Random, bytes: number): string {
  let out = `<style>\n.more > a { color: #${(random.int(900_000) + 99_999).toString(16)} }\n</style>\n<script>\n`
  out += `var menu = '<a href="/script-trap">not a link</a>';\n`
  for (let i = 0; out.length < bytes; i++) {
    out += `function f${i}(a, b) { if (a < b && b > ${random.int(10_000)}) { return a + ${random.int(100)} } return "${random.int(1e9)}" }\n`
  }
  return `${out}</script>\n`
}

function escapeAttribute(text: string): string {
  return text.includes('&') ? text.replaceAll('&', '&amp;') : text
}
