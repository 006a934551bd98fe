import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type DefaultTreeAdapterTypes, defaultTreeAdapter, parse as parseTree, html as spec } from 'parse5'
import { cleanHref } from '../../../processors/parse/links.ts'
import { createPageParser } from '../../../processors/parse/page.ts'
import { iterateLinks } from '../../../schemas/links.ts'
import { lacks, realPages } from './suite.ts'

const parse = createPageParser()

interface Found {
  /** Distinct, in document order, with what they are. */
  readonly links: string[]
  readonly title: string | null
}

/** `others`: hrefs that were first seen as something else, a translation above all. */
function ours(body: Buffer): Found & { others: ReadonlySet<string> } {
  const page = parse({
    url: 'http://h.example/',
    contentType: 'text/html; charset=utf-8',
    headers: [],
    body,
    agentToken: 'weir',
  })
  assert.ok(page !== null)
  const all = [...iterateLinks(page.links)]
  const links = all.filter(({ kind }) => kind === 'anchor' || kind === 'frame')
  const others = new Set(all.filter((link) => !links.includes(link)).map(({ href }) => href))
  return { links: links.map(({ kind, href }) => `${kind} ${href}`), title: page.title, others }
}

/** The same from a tree that is built as a browser without scripts builds it. */
function browsers(body: Buffer): Found {
  const links = new Map<string, string>()
  let title: string | null = null
  const visit = (node: DefaultTreeAdapterTypes.Node): void => {
    if (defaultTreeAdapter.isElementNode(node)) {
      const attribute = (name: string): string | undefined => node.attrs.find((each) => each.name === name)?.value
      const inHtml = node.namespaceURI === spec.NS.HTML
      const rel =
        attribute('rel')
          ?.toLowerCase()
          .split(/[\t\n\f\r ]+/) ?? []
      const paged =
        node.tagName === 'link' &&
        !rel.includes('canonical') &&
        !rel.includes('alternate') &&
        (rel.includes('next') || rel.includes('prev'))
      const isAnchor = node.tagName === 'a' || (inHtml && node.tagName === 'area') || paged
      const isFrame = inHtml && (node.tagName === 'iframe' || node.tagName === 'frame')
      const href = isAnchor ? attribute('href') : isFrame ? attribute('src') : undefined
      const clean = cleanHref(href ?? '')
      if (clean !== '' && !clean.startsWith('#') && !links.has(clean)) links.set(clean, isAnchor ? 'anchor' : 'frame')
      if (inHtml && node.tagName === 'title' && title === null) {
        const [text] = node.childNodes
        title = text !== undefined && defaultTreeAdapter.isTextNode(text) ? text.value : ''
      }
    }
    if ('childNodes' in node) node.childNodes.forEach(visit)
  }
  visit(parseTree(body.toString(), { scriptingEnabled: false }))
  const collapsed = ((title ?? '') as string).replace(/\s+/g, ' ').trim()
  return { links: [...links].map(([href, kind]) => `${kind} ${href}`), title: collapsed || null }
}

test('links and titles of real pages are those of a browser', { skip: lacks('readability') }, (t) => {
  let links = 0
  for (const { name, html } of realPages()) {
    const expected = browsers(html)
    const found = ours(html)
    const wanted = expected.links.filter((link) => !found.others.has(link.slice(link.indexOf(' ') + 1)))
    assert.deepEqual(found.links, wanted, name)
    assert.equal(found.title, expected.title, name)
    links += found.links.length
  }
  t.diagnostic(`${links} links`)
  assert.ok(links > 2_000)
})

const text = fc.constantFrom(
  'x',
  ' ',
  '\n',
  '&',
  '&amp;',
  '&copy',
  '&#x41;',
  'é',
  '"',
  "'",
  '>',
  '/',
  '=',
  '-->',
  '<',
  '<3',
  '</',
  '</ x>',
  '<?php ?>',
  '\r\n',
)
const quoted = fc.constantFrom(
  '"/a&amp;b"',
  "'/q?x=1&copy=2'",
  '/bare',
  '"  /s\n pace "',
  '"',
  "'",
  '/p&lt',
  '"#f"',
  '""',
  '/é',
  '\t/t',
)
const attribute = fc.oneof(
  fc
    .tuple(fc.constantFrom('href', 'HREF', 'src', 'rel', 'class', '/', '"'), fc.constantFrom('=', ' = ', '=\n'), quoted)
    .map((parts) => parts.join('')),
  fc.constantFrom('href', 'disabled', '/', '=', 'a/b', "'"),
)
const attributes = fc.array(attribute, { maxLength: 4 }).map((list) => list.join(' '))
const names = fc.constantFrom(
  'a',
  'A',
  'area',
  'iframe',
  'div',
  'p',
  'b',
  'title',
  'script',
  'style',
  'textarea',
  'xmp',
  'noembed',
  'li',
  'x-a',
  'noscript',
)
const piece = fc.oneof(
  text,
  fc
    .tuple(names, attributes, fc.constantFrom('>', ' >', '/>', ' />', ''))
    .map(([name, list, end]) => `<${name} ${list}${end}`),
  names.map((name) => `</${name}>`),
  fc.constantFrom(
    '<!-- <a href=/c> -->',
    '<!-->',
    '<!--->',
    '<!--',
    '--!>',
    '<!doctype html>',
    '<![CDATA[<a href=/d>]]>',
    '<!x>',
    '</script',
    '<!--<script>',
    '</title\n>',
  ),
)

test('links and titles of tag soup are those of a browser', () => {
  const seed = Number(process.env.SEED ?? Date.now() % 2 ** 31)
  console.log(`seed ${seed}`)
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 25 }), (pieces) => {
      const body = Buffer.from(pieces.join(''))
      const found = ours(body)
      const expected = browsers(body)
      // A tree's clones and moves change the order.
      assert.deepEqual(new Set(found.links), new Set(expected.links))
      assert.equal(found.title, expected.title)
    }),
    { numRuns: 3_000, seed },
  )
})

test('no bytes make the parser throw, and links stay within the page', () => {
  const seed = Number(process.env.SEED ?? Date.now() % 2 ** 31)
  console.log(`seed ${seed}`)
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    fc.array(piece, { maxLength: 30 }).map((list) => Buffer.from(list.join(''), 'latin1')),
  )
  const type = fc.constantFrom(
    'text/html',
    'application/xhtml+xml',
    'text/plain',
    'text/html; charset=utf-16le',
    'text/html;charset=iso-2022-jp',
  )
  fc.assert(
    fc.property(bytes, type, (body, contentType) => {
      const page = parse({
        url: 'http://h.example/',
        contentType,
        headers: [],
        body: Buffer.from(body),
        agentToken: 'weir',
      })
      if (page !== null) assert.equal([...iterateLinks(page.links)].length, page.linkCount)
    }),
    { numRuns: 2_000, seed },
  )
})
