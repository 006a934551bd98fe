import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ParsedPage, parsePage } from '../../../processors/parse/page.ts'
import { iterateLinks } from '../../../schemas/links.ts'

type Headers = readonly (readonly [string, string])[]

function parse(html: string | Buffer, headers: Headers = [], contentType: string | null = 'text/html'): ParsedPage {
  const page = parsePage({
    url: 'http://h.example/x/y',
    contentType,
    headers,
    body: Buffer.from(html as string),
    agentToken: 'MyBot',
  })
  assert.ok(page !== null)
  return page
}

/** `kind href`, with `!` for nofollow. */
function links(html: string | Buffer, headers: Headers = []): string[] {
  const page = parse(html, headers)
  const found = [...iterateLinks(page.links)]
  assert.equal(found.length, page.linkCount)
  return found.map((link) => `${link.kind}${(link.flags & 1) === 1 ? '!' : ''} ${link.href}`)
}

test('L1: the first base with a href counts, against the page', () => {
  const page = parse('<a href=a></a><base target=_top><base href="../z/"><base href="/other/">')
  assert.equal(page.baseUrl, 'http://h.example/z/')
  assert.deepEqual(
    [...iterateLinks(page.links)].map((link) => new URL(link.href, page.baseUrl).href),
    ['http://h.example/z/a'],
  )
  for (const bad of ['data:text/html,x', 'javascript:0', 'http://']) {
    assert.equal(parse(`<base href="${bad}"><a href=a>`).baseUrl, 'http://h.example/x/y')
  }
})

test('L1: every distinct link once, trimmed as a URL parser trims', () => {
  assert.deepEqual(
    links(`<a href=" /a\n"></a><A HREF='/a'></a><area href=/b><iframe src="/c"></iframe><frame src=/d>
      <a href="#top"></a><a href></a><a href="/e
f"></a><a name=x></a><a href=/g href=/h></a><a href="mailto:a@b.example"></a><a href="javascript:void(0)"></a>`),
    [
      'anchor /a',
      'anchor /b',
      'frame /c',
      'frame /d',
      'anchor /ef',
      'anchor /g',
      'anchor mailto:a@b.example',
      'anchor javascript:void(0)',
    ],
  )
})

test('links are not found where a browser finds none', () => {
  const hidden = '<a href=/no></a>'
  assert.deepEqual(
    links(`<!-- ${hidden} --><script>"${hidden}"</script><style>${hidden}</style><textarea>${hidden}</textarea>
      <title>${hidden}</title><noembed>${hidden}</noembed><xmp>${hidden}</xmp><template>${hidden}<div></div></template>
      <iframe>${hidden}</iframe><noscript><a href=/without-scripts></a></noscript>
      <template shadowrootmode=open><a href=/shadow></a></template><svg><a href=/drawn></a></svg><a href="/yes">`),
    ['anchor /without-scripts', 'anchor /shadow', 'anchor /drawn', 'anchor /yes'],
  )
})

test('meta refresh and link elements', () => {
  assert.deepEqual(
    links(`<meta http-equiv=Refresh content="5; URL='/next page'"><meta http-equiv=refresh content=3>
      <meta http-equiv=refresh content="0;/bare"><meta http-equiv=refresh content="x; url=/bad">
      <link rel=stylesheet href=/s.css><link rel="Alternate" hreflang=de href=/de><link rel=alternate type=application/rss+xml href=/rss>
      <link rel=next href="?p=2">`),
    ['refresh /next page', 'refresh /bare', 'alternate /de', 'anchor ?p=2'],
  )
  assert.deepEqual(
    links('', [
      ['Link', '</fr>; rel="alternate"; hreflang=fr, <https://h.example/c>; rel=canonical; title="a, \\"b\\" <c>"'],
      ['Refresh', '1; url=z'],
    ]),
    ['alternate http://h.example/fr', 'refresh http://h.example/x/z', 'canonical https://h.example/c'],
  )
})

test('L3: rel is a list of tokens in any case; only nofollow counts', () => {
  assert.deepEqual(
    links(`<a rel="noopener NOFOLLOW" href=/a></a><a rel="nofollowed" href=/b></a><a rel="ugc sponsored" href=/c></a>
      <a rel="nofollow" href=/d></a><a href=/d></a>`),
    ['anchor! /a', 'anchor /b', 'anchor /c', 'anchor /d'],
  )
})

test('L3: robots directives are the union of generic ones and ours', () => {
  const directives = (html: string, headers: Headers = []): string => {
    const page = parse(`${html}<a href=/a>`, headers)
    const found = page.directives
    assert.equal([...iterateLinks(page.links)][0]!.flags, found.nofollow ? 1 : 0)
    return Object.entries(found)
      .filter(([, on]) => on)
      .map(([name]) => name)
      .join(' ')
  }
  assert.equal(directives('<META NAME="ROBOTS" CONTENT="NoIndex , NOARCHIVE">'), 'noindex noarchive')
  assert.equal(directives('<meta content=none name=robots>'), 'noindex nofollow')
  assert.equal(directives('<meta name=mybot content=nofollow><meta name=otherbot content=noindex>'), 'nofollow')
  assert.equal(directives('<meta name=robots content=index,follow>'), '')
  assert.equal(directives('<meta name=robots content=noindex>', [['X-Robots-Tag', 'nofollow']]), 'noindex nofollow')
  assert.equal(
    directives('', [
      ['X-Robots-Tag', 'mybot: noindex'],
      ['x-robots-tag', 'nofollow'],
    ]),
    'noindex nofollow',
  )
  assert.equal(directives('', [['X-Robots-Tag', 'otherbot: noindex, nofollow, MYBOT: noarchive']]), 'noarchive')
  assert.equal(
    directives('', [['X-Robots-Tag', 'max-snippet: 5, unavailable_after: 25 Jun 2010 15:00:00 PST, noindex']]),
    'noindex',
  )
})

test('L4: canonical links that differ are ignored; relative ones are resolved', () => {
  const canonical = (html: string, headers: Headers = []): string | null => parse(html, headers).canonicalUrl
  assert.equal(canonical('<link rel=canonical href="../c?x=1#y">'), 'http://h.example/c?x=1')
  assert.equal(canonical('<base href="/b/"><link rel="canonical" href=c>'), 'http://h.example/b/c')
  assert.equal(canonical('<link rel=canonical href=/a><link rel=canonical href=/b>'), null)
  assert.equal(
    canonical('<link rel=canonical href=/a><link rel=canonical href=http://h.example/a>'),
    'http://h.example/a',
  )
  assert.equal(canonical('<link rel=canonical href=/a>', [['Link', '<b>; rel="canonical"']]), null)
  assert.equal(canonical('', [['Link', '<b>; rel="canonical"']]), 'http://h.example/x/b')
  assert.equal(canonical('<link rel=canonical href="mailto:x@y.example"><link rel=canonical href="">'), null)
  assert.deepEqual(links('<link rel=canonical href=/a><link rel=canonical href=/b>'), [])
})

test('U7: references are decoded once, so a page that links to itself converges', () => {
  let href = '?a=1&amp;amp;b=2'
  const seen = new Set<string>()
  for (let i = 0; i < 5; i++) {
    const page = parse(`<a href="${href}">`)
    const link = [...iterateLinks(page.links)][0]!.href
    seen.add(link)
    // A server that escapes what it was asked for once, as it should.
    href = link.replaceAll('&', '&amp;')
  }
  assert.deepEqual([...seen], ['?a=1&amp;b=2'])
})

test('links are bounded, and what is left out is counted', () => {
  const page = parse(Array.from({ length: 6_000 }, (_, i) => `<a href=/${i}>`).join(''))
  assert.equal(page.linkCount, 5_000)
  assert.equal(page.excessCount, 1_000)
  const long = parse(`<a href=/${'x'.repeat(300_000)}></a><a href=/short>`)
  assert.deepEqual([long.linkCount, long.excessCount], [1, 1])
})

test('title, snippet and language', () => {
  const page = parse(`<html lang="en_GB"><title>\n A &amp;\t B </title><title>C</title><svg><title>D</title></svg>
    <meta name=description content=" What  it is ">`)
  assert.deepEqual([page.title, page.snippet, page.language], ['A & B', 'What it is', 'en-GB'])
  const bare = parse('<svg><title>Icon</title></svg>', [['Content-Language', 'fr, en']])
  assert.deepEqual([bare.title, bare.snippet, bare.language], [null, null, 'fr'])
  assert.equal(parse(`<title>${'x'.repeat(5_000)}</title>`).title!.length, 1_024)
  assert.equal(parse('<html lang="<b>">').language, null)
  const words = parse(`<p>${'seventeen sentences of text '.repeat(40)}`)
  assert.match(words.snippet!, /^seventeen .* (?:seventeen|sentences|of|text)$/)
  assert.ok(words.snippet!.length <= 200)
})

test('main text: chrome is dropped, an article keeps its own header, and short pages keep all', () => {
  const sentence = 'The quick brown fox jumps over the lazy dog and then rests. '
  const page = parse(`<body><header>Site name and a long slogan that nobody has ever read to its end</header>
    <nav><ul><li>${sentence}</ul></nav><div><aside>${sentence}</div><form>${sentence}</form>
    <article><header><h1>Own heading</h1><p>${sentence}</p></header><p>${sentence.repeat(3)}
    <p><a href=/x>${sentence}</a> more</p><p>cut<p>${sentence} caf&eacute;&nbsp;<b>bo</b>ld</article>
    <footer>${sentence}</footer><script>${sentence}</script>`)
  const fox = sentence.trim()
  assert.equal(page.text, ['Own heading', fox, `${fox} ${fox} ${fox}`, 'cut', `${fox} café bold`].join('\n'))
  assert.equal(parse('<nav>a b</nav><p>c &lt; d</p><select><option>e</select>').text, 'a b\nc < d')
})

test('text is bounded', () => {
  const page = parse(`<p>${'wörter '.repeat(100_000)}`)
  const bytes = Buffer.byteLength(page.text)
  assert.ok(bytes <= 256 * 1024 && bytes > 256 * 1024 - 64)
  assert.ok(!page.text.includes('\ufffd'))
  assert.ok(Buffer.byteLength(parse('é'.repeat(200_000), [], 'text/plain').text) <= 256 * 1024)
})

test('types: XHTML, plain text, none, and those without handler', () => {
  const xhtml = '<?xml version="1.0" encoding="iso-8859-2"?><html><script src="/s"/><body><a href="/a"/>'
  assert.equal(parse(xhtml, [], 'application/xhtml+xml; x=y').linkCount, 1)
  assert.equal(parse(xhtml, [], 'application/xhtml+xml').charset, 'iso-8859-2')
  assert.equal(parse(xhtml).linkCount, 0)
  const plain = parse('<a href=/a>\r\n\r\n  two  words ', [['X-Robots-Tag', 'noindex']], 'TEXT/PLAIN')
  assert.deepEqual(
    [plain.title, plain.linkCount, plain.text, plain.directives.noindex],
    [null, 0, '<a href=/a>\ntwo words', true],
  )
  const input = { url: 'http://h.example/', headers: [], agentToken: 'weir' }
  assert.equal(parsePage({ ...input, contentType: 'image/png', body: Buffer.from('<html>') }), null)
  assert.equal(parsePage({ ...input, contentType: 'text/plain', body: Buffer.from([0x89, 1, 2, 3]) }), null)
  assert.equal(parsePage({ ...input, contentType: null, body: Buffer.from('\n<!DOCTYPE HTML><p>x') })?.text, 'x')
  assert.equal(parsePage({ ...input, contentType: null, body: Buffer.from('GIF89a') }), null)
})

test('C1: a page is read in the encoding that it declares', () => {
  const body = Buffer.concat([
    Buffer.from('<meta charset=windows-1251><title>'),
    Buffer.from([0xcf, 0xf0, 0xe8, 0xe2, 0xe5, 0xf2]),
  ])
  const page = parse(Buffer.concat([body, Buffer.from('</title><a href="/'), Buffer.from([0xff]), Buffer.from('">')]))
  assert.deepEqual([page.charset, page.title], ['windows-1251', 'Привет'])
  assert.equal([...iterateLinks(page.links)][0]!.href, '/я')
})

test('parsing is a function of its input: nothing stays from the page before', () => {
  const first = '<title>A</title><base href=/b/><template><nav><a href=/a>x<p>one <svg><script><!--<script>'
  const second = `<p>${'other words '.repeat(30)}<a href=/c>`
  const before = parse(second)
  parse(first)
  assert.deepEqual(parse(second), before)
})

test('hostile pages take linear time', () => {
  const deep = `<section><template>${'<div>'.repeat(500)}`
  for (const [before, piece] of [
    ['', '<a href=x>'],
    ['', '<div>'],
    ['', '</div>'],
    [deep, '</section>'],
    ['', '<template>'],
    ['', '<nav>'],
    ['', '<p>a'],
    ['', '&amp;'],
    ['<p>', '&#'],
    ['<p>&#', '9'],
    ['<p>', '\u3042'],
    ['<title>', ' '],
    ['<title>', '&a'],
    ['<svg>', '<title/>'],
    ['<meta name=robots content="', 'noindex:,'],
    ['<meta http-equiv=refresh content="', '1.'],
    ['<meta name=description content="', ' \t'],
    ['<a rel="', 'a '],
    ['<link rel=canonical href="', '\n'],
    ['<p>', '12:'],
    ['<p>', '1-'],
    ['<p>', '12345 '],
    ['<article>', '<p>ten words are enough to keep a block of text here '],
  ] as const) {
    const body = before + piece.repeat(Math.ceil(400_000 / piece.length))
    const started = process.cpuUsage()
    parse(body, [
      ['Link', piece.repeat(20_000)],
      ['X-Robots-Tag', piece.repeat(20_000)],
      ['Refresh', piece.repeat(20_000)],
    ])
    // Quadratic time would be minutes at this size.
    assert.ok(process.cpuUsage(started).user < 2e6, `${before.slice(0, 40)} and then ${piece}, repeated`)
  }
})
