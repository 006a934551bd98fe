import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeAttribute, decodeText } from '../../../processors/parse/references.ts'
import { attributeWords, createScanner, type Scanner, tokenKinds } from '../../../processors/parse/tokenizer.ts'
import { lacks, suiteFile } from './suite.ts'

type Token = ['Character', string] | ['StartTag', string, { [name: string]: string }, ...true[]] | ['EndTag', string]

const scanner = createScanner({ everything: true })

/** The tape as html5lib writes tokens down. `rcdata`: whether references in raw text count. */
function tokens(bytes: Buffer, raw = '', rcdata = false, from: Scanner = scanner): Token[] {
  const found: Token[] = []
  const { tape } = from
  from.begin(bytes, raw)
  for (let n = from.fill(); n > 0; n = from.fill()) {
    for (let w = 0; w < n; ) {
      const kind = tape[w]! & 0xff
      const slice = bytes.toString('utf8', tape[w + 1], tape[w + 2])
      if (kind === tokenKinds.start) {
        const attributes: { [name: string]: string } = {}
        const end = w + 4 + attributeWords * tape[w + 3]!
        for (let a = w + 4; a < end; a += attributeWords) {
          const name = clean(bytes.toString('utf8', tape[a + 1], tape[a + 2])).toLowerCase()
          const value = decodeAttribute(bytes.toString('utf8', tape[a + 3], tape[a + 4]))
          if (!Object.hasOwn(attributes, name)) {
            Object.defineProperty(attributes, name, { value, enumerable: true, configurable: true, writable: true })
          }
        }
        found.push(['StartTag', clean(slice).toLowerCase(), attributes])
        w = end
        continue
      }
      if (kind === tokenKinds.end) found.push(['EndTag', clean(slice).toLowerCase()])
      else {
        const text = kind === tokenKinds.raw && !rcdata ? slice.replace(/\r\n?/g, '\n') : decodeText(slice)
        const last = found.at(-1)
        if (last?.[0] === 'Character') last[1] += text
        else if (text !== '') found.push(['Character', text])
      }
      w += 3
    }
  }
  return found
}

function clean(name: string): string {
  return name.replaceAll('\0', '\ufffd')
}

interface Case {
  description: string
  input: string
  output: (string | [string, ...unknown[]])[]
  initialStates?: string[]
  lastStartTag?: string
  doubleEscaped?: boolean
}

const rawStates: { [state: string]: { tag: string; rcdata: boolean } } = {
  'RCDATA state': { tag: '', rcdata: true },
  'RAWTEXT state': { tag: '', rcdata: false },
  'Script data state': { tag: 'script', rcdata: false },
  'PLAINTEXT state': { tag: 'plaintext', rcdata: false },
}

const files = ['test1', 'test2', 'test3', 'entities', 'namedEntities', 'contentModelFlags', 'escapeFlag']
for (const file of files) {
  test(`tokens agree with html5lib ${file}`, { skip: lacks('html5lib/tokenizer') }, (t) => {
    const suite = JSON.parse(suiteFile(`html5lib/tokenizer/${file}.test`).toString()) as { tests: Case[] }
    let checked = 0
    let others = 0
    for (const item of suite.tests) {
      const plain = (text: string): string =>
        item.doubleEscaped === true
          ? text.replace(/\\u([0-9a-f]{4})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
          : text
      const expected = expectedTokens(item, plain)
      for (const state of item.initialStates ?? ['Data state']) {
        const raw = rawStates[state]
        // Half surrogates cannot be written as UTF-8; a CDATA section cannot be begun in; raw text without end tag has no name.
        const input = plain(item.input)
        const found = tokens(
          Buffer.from(input),
          raw === undefined ? '' : raw.tag || (item.lastStartTag ?? ''),
          raw?.rcdata ?? false,
        )
        if (!input.isWellFormed() || state === 'CDATA section state') {
          others++
          continue
        }
        assert.deepEqual(found, expected, `${file}: ${item.description} (${state}): ${JSON.stringify(input)}`)
        checked++
      }
    }
    t.diagnostic(`${checked} checked, ${others} only run`)
    assert.ok(checked > others)
  })
}

function expectedTokens(item: Case, plain: (text: string) => string): Token[] {
  const expected: Token[] = []
  for (const token of item.output) {
    if (typeof token === 'string' || token[0] === 'Comment' || token[0] === 'DOCTYPE') continue
    // A NUL in text is kept by the tokenizer and dropped by the tree builder; here it is replaced as elsewhere.
    const text = clean(plain(token[1] as string))
    const last = expected.at(-1)
    if (token[0] === 'Character') {
      if (last?.[0] === 'Character') last[1] += text
      else expected.push(['Character', text])
    } else if (token[0] === 'EndTag') expected.push(['EndTag', text])
    else {
      const attributes = token[2] as { [name: string]: string }
      const unescaped = Object.entries(attributes).map(([name, value]) => [plain(name), plain(value)])
      expected.push(['StartTag', text, Object.fromEntries(unescaped)])
    }
  }
  return expected
}

const names = (html: string, from?: Scanner): string =>
  tokens(Buffer.from(html), '', false, from)
    .map((token) => (token[0] === 'EndTag' ? `/${token[1]}` : token[1]))
    .join(' ')

test('a script ends where a browser ends it', () => {
  assert.equal(
    names('<script><!-- <script> </script> --> </script><b>'),
    'script <!-- <script> </script> -->  /script b',
  )
  assert.equal(names('<script><!-- a </script><b>'), 'script <!-- a  /script b')
  assert.equal(names('<script><!--><script></script><b>'), 'script <!--><script> /script b')
  assert.equal(names('<script><!-- <script> --></script><b>'), 'script <!-- <script> --> /script b')
  assert.equal(names('<script></scripts></SCRIPT ><b>'), 'script </scripts> /script b')
})

test('foreign elements close themselves and hold CDATA', () => {
  assert.equal(names('<svg><title/><style/></svg><b>'), 'svg title style /svg b')
  assert.equal(names('<svg><![CDATA[<a>]]></svg><b>'), 'svg <a> /svg b')
  assert.equal(names('<![CDATA[<a>]]><b>'), ']]> b')
  assert.equal(names('<svg><p><title/></title><b>'), 'svg p title /title b')
  assert.equal(names('<script/><b>'), 'script <b>')
  assert.equal(names('<script/><b>', createScanner({ everything: true, xml: true })), 'script b')
})

test('tokens longer than the tape and many attributes are bounded', () => {
  const found = tokens(Buffer.from(`<a ${'x=1 '.repeat(5_000)} href=y>${'<b>t'.repeat(20_000)}`))
  assert.equal(found.length, 40_001)
  assert.equal(found[0]![1], 'a')
})

test('references of attributes follow their own rule, and are decoded once', () => {
  assert.equal(decodeAttribute('?a=1&amp=2&copy=3&copyx&copy;&copy'), '?a=1&amp=2&copy=3&copyx©©')
  assert.equal(
    decodeText('&copyx &notit; &notin; &amp;amp; &#x80; &#0; &#xd800; &#x110000;'),
    '©x ¬it; ∉ &amp; € \ufffd \ufffd \ufffd',
  )
  assert.equal(decodeText('a\r\nb\rc'), 'a\nb\nc')
  assert.equal(decodeText(`&#${'0'.repeat(100_000)}65;&#${'9'.repeat(100_000)};`), 'A\ufffd')
})

test('hostile pages take linear time', () => {
  const hostile = [
    '<',
    '</',
    '<!--',
    '<!-- -->',
    '<!--->',
    '<a',
    '<a ',
    '<a b=',
    '<a b="',
    "<a b='c",
    '<script>',
    '<script><!--',
    '<!--<script>',
    '<script><!-- <script> -->',
    '<title>',
    '</title',
    '<svg><![CDATA[',
    '&',
    '&#',
    '&amp',
    '&#x1',
    '<plaintext>',
    '<![CDATA[',
    '<a/',
    '<textarea></',
    '<style></styl',
    '<a b=c d=e>',
    '\0',
    '-->',
    '--!>',
  ]
  for (const piece of hostile) {
    const opened = piece.startsWith('<!--<') ? `<script>${piece}` : piece
    const seconds = (repeats: number): number => {
      const bytes = Buffer.from(opened + piece.repeat(repeats))
      const started = process.cpuUsage()
      tokens(bytes)
      return process.cpuUsage(started).user / 1e6
    }
    // Quadratic time would be minutes at this size.
    assert.ok(seconds(Math.ceil(400_000 / piece.length)) < 2, `${piece} repeated`)
  }
})
