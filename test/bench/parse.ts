import { load } from 'cheerio'
import { parse as parseTree } from 'parse5'
import { createPageParser } from '../../processors/parse/page.ts'
import type { BenchRow } from './run.ts'

/** How it is measured. */
export const method =
  'seeded pages of 30 KB and 185 KB, a quarter of them main text; CPU time, medians of interleaved rounds in one process; ours gives links, directives, main text, language and three fingerprints, the peers only a tree'

const rounds = 7
const roundMs = 120

/** HTML bytes a second on one core, against parse5 and cheerio in the same run. */
export async function bench(seed: number): Promise<BenchRow[]> {
  const rows: BenchRow[] = []
  const parse = createPageParser()
  for (const kilobytes of [30, 185]) {
    const pages = Array.from({ length: 20 }, (_, i) => makePage(seed * 1_000 + i, kilobytes * 1_000))
    const ours = (body: Buffer): unknown =>
      parse({
        url: 'http://h.example/',
        contentType: 'text/html; charset=utf-8',
        headers: [],
        body,
        agentToken: 'weir',
      })
    const rates = measure(pages, [ours, (body) => parseTree(body.toString()), (body) => load(body)])
    const [weir, parse5, cheerio] = rates as [number, number, number]
    const size = `${kilobytes} KB page`
    rows.push(
      { what: `${size}, weir`, value: weir, unit: 'MB/s', bar: '>= 100', goal: '>= 300', ok: weir >= 100 },
      { what: `${size}, parse5 tree only`, value: parse5, unit: 'MB/s' },
      { what: `${size}, cheerio load only`, value: cheerio, unit: 'MB/s' },
      { what: `${size}, weir / parse5`, value: weir / parse5, unit: 'x' },
      { what: `${size}, weir / cheerio`, value: weir / cheerio, unit: 'x' },
    )
  }
  return rows
}

/** Median rate of each, in MB/s; the candidates take turns, so that a slow moment hits all. */
function measure(pages: readonly Buffer[], candidates: readonly ((body: Buffer) => unknown)[]): number[] {
  const rates = candidates.map((): number[] => [])
  for (let round = 0; round <= rounds; round++) {
    candidates.forEach((candidate, c) => {
      let bytes = 0
      const started = process.cpuUsage()
      let elapsedMs = 0
      while (elapsedMs < roundMs) {
        for (const page of pages.slice(0, 4)) {
          candidate(page)
          bytes += page.length
        }
        elapsedMs = process.cpuUsage(started).user / 1_000
      }
      // The first round warms up.
      if (round > 0) rates[c]!.push(bytes / 1_000 / elapsedMs)
    })
  }
  return rates.map((each) => each.sort((a, b) => a - b)[each.length >> 1]!)
}

/** Markup and text in the proportions of real pages: a head with scripts, navigation, paragraphs with links, a footer. */
function makePage(seed: number, size: number): Buffer {
  let state = seed
  const random = (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0
    return ((state >>> 8) * below) >>> 24
  }
  const words = (count: number): string =>
    Array.from({ length: count }, () => vocabulary[random(vocabulary.length)]).join(' ')
  const link = (): string =>
    `<a class="link-${random(9)}" href="/${words(1)}/${random(1e6)}.html?a=1&amp;b=${random(9)}">${words(3)}</a>`
  const parts = [
    `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>${words(6)}</title><script>var a = "${words(120)}"; if (a < 1) {}</script>`,
    `<style>${'.a > .b { color: red }\n'.repeat(40)}</style></head><body><nav><ul>`,
    ...Array.from({ length: 25 }, () => `<li class="item">${link()}</li>\n`),
    '</ul></nav><main>',
  ]
  let length = parts.reduce((sum, part) => sum + part.length, 0)
  while (length < size) {
    const classes = (): string =>
      `class="${words(2)} grid-${random(12)} is-${random(9)}" data-id="${random(1e6)}" style="width:${random(100)}%"`
    const part = `<div ${classes()}><div ${classes()}><h2 id="s${random(99)}">${words(5)}</h2><!-- ${words(4)} -->
      <figure ${classes()}><img ${classes()} src="/i/${random(1e6)}.png" srcset="/i/${random(1e6)}.png 2x" loading="lazy" alt=""></figure>
      <p>${words(25)}, ${link()} ${words(10)} &mdash; it&#39;s <b>${words(2)}</b>.</p>
      <span ${classes()}><svg viewBox="0 0 24 24"><path d="M12 2C6.5 2 2 6.5 2 12s4.5 10 10 10 10-4.5 10-10S17.5 2 12 2z"/></svg></span>
      <script type="application/json">{"a":"${words(12)}"}</script></div></div>\n`
    parts.push(part)
    length += part.length
  }
  parts.push(`</main><footer><p>${words(30)}</p></footer></body></html>`)
  return Buffer.from(parts.join(''))
}

const vocabulary = Array.from({ length: 1_500 }, (_, i) => {
  const syllables = ['ka', 'ro', 'men', 'ti', 'sol', 'ver', 'na', 'dis', 'pre', 'lo', 'gar', 'en']
  return `${syllables[i % 12]}${syllables[(i * 7 + (i >> 4)) % 12]}${i % 3 === 0 ? '' : syllables[(i >> 3) % 12]}`
})
