import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { DomLimitError, loadDom } from '../../../processors/parse/dom.ts'
import {
  createExtractor,
  type ExtractInput,
  maxExtractedBytes,
  maxPageChars,
  maxValueChars,
  maxValues,
} from '../../../processors/parse/extract.ts'
import { type ExtractRules, readExtractRules, rulesHash } from '../../../processors/parse/extract-rules.ts'
import { defaultSettings, resolveSettings } from '../../../topology/settings.ts'

const shop = `<!doctype html><title>Shop</title>
<ul><li class="item"><a href="/1" data-id="a&amp;b">One <b>big</b>
   thing</a> <span class=price> 1 €\u00a0</span>
<li class="item"><a href="/2">Two</a> <span class=price>2 €</span>
<li class="item"><a>no link</a> <span class=price></span>
</ul><table><tr><td>cell</table>`

test('text is collapsed, html is inner HTML, attr:NAME an attribute; one or many, in document order', () => {
  const rules = {
    name: { css: '.item a' },
    names: { css: '.item a', many: true },
    markup: { css: '.item a', read: 'html' },
    links: { css: '.item a', read: 'attr:href', many: true },
    id: { css: 'a', read: 'attr:data-id' },
    prices: { css: '.price', many: true },
    nothing: { css: '.sold' },
  }
  assert.deepEqual(extract(rules, shop), {
    name: ['One big thing'],
    names: ['One big thing', 'Two', 'no link'],
    markup: ['One <b>big</b>\n   thing'],
    links: ['/1', '/2'],
    id: ['a&b'],
    prices: ['1 €', '2 €'],
  })
})

test('the tree is the one that browsers build: selectors as their tools show them match', () => {
  assert.deepEqual(extract({ cell: { css: 'table > tbody > tr > td' } }, shop), { cell: ['cell'] })
})

test('a rule with hosts is for these alone, and a page that no rule is for is never decoded', () => {
  const rules = {
    a: { css: 'title', hosts: ['SHOP.example', 'bücher.example'] },
    b: { css: 'title', hosts: ['b.example'] },
  }
  assert.deepEqual(extract(rules, shop, { host: 'shop.example' }), { a: ['Shop'] })
  assert.deepEqual(extract(rules, shop, { host: 'xn--bcher-kva.example' }), { a: ['Shop'] })
  assert.deepEqual(extract(rules, shop, { host: 'www.shop.example' }), {})
  const poisoned = Buffer.from(shop)
  poisoned.subarray = () => assert.fail('it was decoded')
  assert.deepEqual(extract(rules, poisoned, { host: 'other.example' }), {})
  assert.deepEqual(extract({ a: { css: 'title' } }, poisoned, { contentType: 'text/plain; charset=utf-8' }), {})
})

test('bytes are decoded by the charset that is named', () => {
  const page = Buffer.from('<h1>caf\xe9 \x80</h1>', 'latin1')
  assert.deepEqual(extract({ h: { css: 'h1' } }, page, { charset: 'windows-1252' }), { h: ['café €'] })
})

test('values, their number, what a page may give and what is looked at are bounded', () => {
  const long = `<h1>${'x'.repeat(maxValueChars + 5)}</h1>${'<p>a</p>'.repeat(maxValues + 5)}`
  const found = extract({ h: { css: 'h1' }, p: { css: 'p', many: true } }, long)
  assert.equal(found.h![0]!.length, maxValueChars)
  assert.equal(found.p!.length, maxValues)

  const big = `<p>${'é'.repeat(9000)}</p>`.repeat(40)
  const all = extract({ p: { css: 'p', many: true }, q: { css: 'p', many: true } }, big)
  const bytes = Object.values(all)
    .flat()
    .reduce((sum, value) => sum + Buffer.byteLength(value), 0)
  assert.ok(bytes <= maxExtractedBytes && bytes > maxExtractedBytes - 20_000, `${bytes} bytes`)

  const late = `${' '.repeat(maxPageChars)}<h1>late</h1>`
  assert.deepEqual(extract({ h: { css: 'h1' } }, late), {})
})

test('a value is cut between characters: it survives UTF-8', () => {
  const [value] = extract({ h: { css: 'h1' } }, `<h1>${'x'.repeat(maxValueChars - 1)}😀</h1>`).h!
  assert.ok(value!.isWellFormed())
  assert.equal(Buffer.from(value!).toString(), value)
})

for (const [what, page] of [
  ['nesting', '<div>'.repeat(100_000) + '</p>'.repeat(100_000)],
  ['attributes', `<p ${Array.from({ length: 100_000 }, (_, i) => `a${i}`).join(' ')}>`],
  ['attributes of an end tag', `</p ${Array.from({ length: 100_000 }, (_, i) => `a${i}`).join('/')}>`],
  ['attributes behind a comment', `<!-- > --><svg><style><b ${'a="x>" '.repeat(100_000)}>`],
  ['siblings', '<i></i>'.repeat(100_000)],
  ['formatting', Array.from({ length: 5_000 }, (_, i) => `<b a=${i}><p>`).join('')],
  ['tags in tags', '<a'.repeat(100_000) + '<a '.repeat(10)],
] as const) {
  test(`a page of hostile ${what} is refused before it costs much`, () => {
    const started = process.cpuUsage()
    assert.throws(() => loadDom(page), DomLimitError)
    const { user } = process.cpuUsage(started)
    // Without bounds each takes from several seconds to minutes.
    assert.ok(user < 2e6, `${user / 1000} ms`)
  })
}

test('no page makes it throw anything but DomLimitError, and the same page gives the same', () => {
  const piece = fc.constantFrom(
    '<',
    '>',
    '"',
    "'",
    '=',
    '/',
    '!--',
    '-->',
    'a',
    ' ',
    '<p ',
    '<svg>',
    '</p>',
    '<script>',
    '&amp',
    '\0',
    '😀',
  )
  const page = fc.array(piece, { maxLength: 60 }).map((pieces) => pieces.join(''))
  const rules = { a: { css: 'p, script, svg *', many: true }, b: { css: '*', read: 'html' } }
  fc.assert(
    fc.property(page, (html) => {
      assert.deepEqual(extract(rules, html), extract(rules, Buffer.from(html)))
    }),
    { numRuns: 300 },
  )
})

test('every fault of the rules is named with its place, together with those of other settings', (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'weir-extract-'))
  t.after(() => rmSync(dir, { recursive: true }))
  const file = join(dir, 'weir.json')
  writeFileSync(
    file,
    `{"dellayMs": 1, "extract": {
      "1st": {"css": "p"}, "a": {"css": "p["}, "b": {"css": "p:foo", "read": "attr:", "colour": 1}, "c": {},
      "d": {"css": " ", "hosts": ["a b", "x.example:80"]}, "e": 3, "f": {"css": "p", "many": "yes"}}}`,
  )
  assert.throws(
    () => resolveSettings({ delayMs: 'soon' }, {}, file),
    (error: Error & { exitCode?: number }) => {
      assert.equal(error.exitCode, 2)
      for (const fault of [
        /unknown setting "dellayMs"/,
        /--delay-ms: must be/,
        /weir\.json: extract\.1st: a field is named by a letter/,
        /weir\.json: extract\.a\.css: "p\[" is no selector: Expected name/,
        /weir\.json: extract\.b\.css: "p:foo" is no selector: Unknown pseudo-class :foo/,
        /weir\.json: extract\.b\.read: must be "text", "html" or "attr:NAME"/,
        /weir\.json: extract\.b: .*"colour"/,
        /weir\.json: extract\.c\.css: /,
        /weir\.json: extract\.d\.css: " " is no selector: it is empty/,
        /weir\.json: extract\.d\.hosts\.0: "a b" is no host/,
        /weir\.json: extract\.d\.hosts\.1: "x\.example:80" is no host/,
        /weir\.json: extract\.e: /,
        /weir\.json: extract\.f\.many: /,
      ]) {
        assert.match(error.message, fault)
      }
      return true
    },
  )
  for (const text of ['[]', '3', 'null', '{"__proto__": {"css": "p"}}']) {
    writeFileSync(file, `{"extract": ${text}}`)
    assert.throws(() => resolveSettings({}, {}, file), /weir\.json: extract(\.__proto__)?: /)
  }
})

test('rules come from the settings file alone, with their defaults filled in', (t) => {
  assert.deepEqual(defaultSettings.extract, {})
  const dir = mkdtempSync(join(tmpdir(), 'weir-extract-'))
  t.after(() => rmSync(dir, { recursive: true }))
  const file = join(dir, 'weir.json')
  writeFileSync(file, '{"extract": {"price": {"css": ".price"}}}')
  const { extract } = resolveSettings({}, {}, file)
  assert.deepEqual(extract, { price: { css: '.price', read: 'text', many: false, hosts: null } })
  assert.throws(() => resolveSettings({}, { WEIR_EXTRACT: '{}' }, undefined), /unknown variable WEIR_EXTRACT/)
})

test('the hash of rules is blind to their order and sees everything else', () => {
  const a = rulesOf({ x: { css: 'p', hosts: ['a.example', 'b.example'] }, y: { css: 'i' } })
  const b = rulesOf({ y: { css: 'i' }, x: { css: 'p', hosts: ['b.example', 'a.example'] } })
  assert.equal(rulesHash(a), rulesHash(b))
  const others = [
    {},
    { x: { css: 'p' } },
    { x: { css: 'p', many: true } },
    { x: { css: 'p', read: 'html' } },
    { z: { css: 'p' } },
  ]
  const hashes = [a, ...others.map(rulesOf)].map(rulesHash)
  assert.equal(new Set(hashes).size, hashes.length)
})

function rulesOf(rules: object): ExtractRules {
  const read = readExtractRules(rules)
  assert.ok('rules' in read, JSON.stringify(read))
  return read.rules
}

function extract(rules: object, body: ExtractInput['body'], more: Partial<ExtractInput> = {}) {
  return createExtractor(rulesOf(rules))({ host: 'shop.example', contentType: 'text/html', body, ...more })
}
