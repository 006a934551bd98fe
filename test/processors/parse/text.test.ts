import assert from 'node:assert/strict'
import { test } from 'node:test'
import { load } from 'cheerio'
import { createPageParser } from '../../../processors/parse/page.ts'
import { lacks, realPages } from './suite.ts'

const parse = createPageParser()

function textOf(html: string | Buffer, contentType = 'text/html; charset=utf-8'): string {
  const page = parse({
    url: 'http://h.example/',
    contentType,
    headers: [],
    body: Buffer.from(html as string),
    agentToken: 'weir',
  })
  assert.ok(page !== null)
  return page.text
}

/** Multiset of word 4-shingles, as Google's and others' boilerplate benchmarks compare texts. */
function shingles(text: string): Map<string, number> {
  const words =
    text
      .normalize('NFKC')
      .toLowerCase()
      .match(/[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}]|[\p{L}\p{N}\p{M}]+/gu) ?? []
  const counts = new Map<string, number>()
  for (let i = 0; i + 4 <= words.length; i++) {
    const key = words.slice(i, i + 4).join(' ')
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return counts
}

function scores(found: string, expected: string): { precision: number; recall: number; f1: number } {
  const a = shingles(found)
  const b = shingles(expected)
  let shared = 0
  for (const [key, count] of a) shared += Math.min(count, b.get(key) ?? 0)
  const sum = (counts: Map<string, number>): number => [...counts.values()].reduce((total, count) => total + count, 0)
  const precision = shared / Math.max(1, sum(a))
  const recall = shared / Math.max(1, sum(b))
  return { precision, recall, f1: shared === 0 ? 0 : (2 * precision * recall) / (precision + recall) }
}

function expectedText(html: Buffer): string {
  const $ = load(html)
  $('script,style,noscript,template').remove()
  $('p,div,li,h1,h2,h3,h4,h5,h6,td,th,tr,br,pre,blockquote,section,article,figure,figcaption,dt,dd,ul,ol')
    .before(' ')
    .after(' ')
  return $.root().text()
}

test('main text of real pages, against what people expect', { skip: lacks('readability') }, (t) => {
  const all = realPages().map(({ name, html, expectedHtml }) => {
    return { name, ...scores(textOf(html), expectedText(expectedHtml)) }
  })
  const mean = (key: 'precision' | 'recall' | 'f1'): number =>
    all.reduce((sum, page) => sum + page[key], 0) / all.length
  t.diagnostic(
    `${all.length} pages: precision ${mean('precision').toFixed(3)}, recall ${mean('recall').toFixed(3)}, F1 ${mean('f1').toFixed(3)}`,
  )
  // Measured 0.889, 0.938 and 0.902.
  assert.ok(mean('precision') >= 0.87 && mean('recall') >= 0.92 && mean('f1') >= 0.885)
})

test('of a page of links, what is left is not what all pages of the site have', () => {
  const imprint = `<div>${'This text is licensed under the same terms on every page of the site. '.repeat(4)}</div>`
  const index = (letter: string): string =>
    textOf(
      Buffer.from(
        `<body><ul>${Array.from({ length: 400 }, (_, i) => `<li><a href="/${letter}${i}">${letter} entry ${i}</a></li>`).join('')}</ul>${imprint}</body>`,
      ),
    )
  assert.match(index('a'), /a entry 7\b/)
  assert.notEqual(index('a'), index('b'))
})
