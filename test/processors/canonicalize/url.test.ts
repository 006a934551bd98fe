import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { type CanonicalUrl, canonicalizeUrl, createUrlResolver } from '../../../processors/canonicalize/url.ts'
import { suite } from '../suites.ts'

function canonical(href: string, base?: string): CanonicalUrl {
  const result = canonicalizeUrl(href, base)
  assert.ok(!('error' in result), `${href}: ${JSON.stringify(result)}`)
  return result
}
const keyOf = (href: string, base?: string): string => canonical(href, base).key
const codeOf = (href: string, base?: string): string => {
  const result = canonicalizeUrl(href, base)
  return 'error' in result ? result.error.code : 'none'
}
function assertStable(href: string, base?: string): void {
  const first = canonicalizeUrl(href, base)
  if ('error' in first) return
  assert.deepEqual(canonicalizeUrl(first.key), { ...first, fetchUrl: first.key })
  // What is fetched is known by the same key, when it is met as a link or as a redirect's target.
  assert.deepEqual(canonicalizeUrl(first.fetchUrl), first)
}

test('U1: reserved escapes stay, and the canonical form is stable', () => {
  for (const path of ['/a%23b', '/a%2525', '/?q=%3B', '/%25', '/%2F', '/%2B', '/?a=%26b&c=%3D']) {
    assert.equal(keyOf(`http://h${path}`), `http://h${path}`)
    assertStable(`http://h${path}`)
  }
})

test('U2: hexadecimal case and escaped unreserved characters give one key', () => {
  assert.equal(keyOf('http://h/%7Euser'), keyOf('http://h/~user'))
  assert.equal(keyOf('http://h/%c3%bc'), 'http://h/%C3%BC')
  assert.equal(keyOf('http://h/ü'), 'http://h/%C3%BC')
  assert.equal(canonical('http://h/%7euser').fetchUrl, 'http://h/%7euser')
})

test('U4: underscores are taken, a name that is no IDNA name is refused', () => {
  assert.equal(canonical('http://a_b.example.com/').host, 'a_b.example.com')
  assert.equal(codeOf('http://xn--a/'), 'syntax')
  assert.equal(codeOf('http://www.xn--a.example/'), 'syntax')
  assert.equal(keyOf('http://bücher.ch/'), 'http://xn--bcher-kva.ch/')
  assert.equal(codeOf('/x', 'http://xn--a/'), 'syntax')
})

test('U6: odd paths and escapes that are not UTF-8', () => {
  assert.equal(keyOf('http://h/..;/'), 'http://h/..;/')
  assert.equal(keyOf('http://h/%E9'), 'http://h/%E9')
  assert.equal(keyOf('http://h/%e9'), 'http://h/%E9')
})

test('U7: what the parser decoded once converges', () => {
  let url = 'http://h/?a=1&amp;b=2'
  const keys = new Set<string>()
  for (let i = 0; i < 5; i++) {
    url = keyOf('?a=1&amp;b=2', url)
    keys.add(url)
  }
  assert.equal(keys.size, 1)
})

test('U8: session identifiers go, in path and query', () => {
  const page = canonical('http://h/p;jsessionid=A1.node2?x=1')
  assert.deepEqual([page.key, page.fetchUrl], ['http://h/p?x=1', 'http://h/p?x=1'])
  assert.equal(keyOf('http://h/a;JSESSIONID=1/b;v=2;jsessionid=3'), 'http://h/a/b;v=2')
  assert.equal(keyOf('http://h/?PHPSESSID=abc&x=1'), 'http://h/?x=1')
  assert.equal(keyOf('http://h/?sid=0123456789abcdef0123456789abcdef'), 'http://h/')
  assert.equal(keyOf('http://h/?sid=42'), 'http://h/?sid=42')
  assert.equal(keyOf('http://h/?sid=1234567890'), 'http://h/?sid=1234567890')
  assert.equal(keyOf('http://h/?sid=0002899b'), 'http://h/')
  // What is left must not turn into another path.
  assert.equal(keyOf('http://h/a/..;jsessionid=1/b'), 'http://h/a/..;jsessionid=1/b')
  assert.equal(keyOf('http://h/a/%2e%2e;jsessionid=1/b'), 'http://h/a/..;jsessionid=1/b')
})

test('U10: a trailing slash is never added', () => {
  assert.notEqual(keyOf('http://h/a'), keyOf('http://h/a/'))
})

test('parameters: sorted in the key, in their own order in what is fetched', () => {
  const page = canonical('HTTP://Example.org:80/a/../b?z=1&a=2&utm_source=x&a=1&gclid=q#top')
  assert.equal(page.key, 'http://example.org/b?a=2&a=1&z=1')
  assert.equal(page.fetchUrl, 'http://example.org/b?z=1&a=2&a=1')
  assert.equal(keyOf('http://h/?'), 'http://h/')
  assert.equal(keyOf('http://h/a?utm_medium=x'), 'http://h/a')
  assert.equal(keyOf('http://h/a?utm%5Fmedium=x'), 'http://h/a')
  assert.equal(keyOf('http://h/?b&a&&c='), 'http://h/?a&b&c=')
})

test('host, port and credentials', () => {
  const page = canonical('https://user:pass@www.example.org:1443/path')
  assert.deepEqual(page, {
    key: 'https://www.example.org:1443/path',
    fetchUrl: 'https://www.example.org:1443/path',
    host: 'www.example.org',
    port: 1443,
    scheme: 'https',
  })
  assert.equal(canonical('https://h:443/').port, 443)
  assert.equal(canonical('http://[2001:DB8::1]/').host, '[2001:db8::1]')
  // One host, one queue: the root's dot names the same server.
  assert.equal(keyOf('http://example.org./x'), 'http://example.org/x')
})

test('refusals have a code', () => {
  assert.equal(codeOf('http://'), 'syntax')
  assert.equal(codeOf('/x'), 'syntax')
  assert.equal(codeOf('/x', 'nonsense'), 'syntax')
  assert.equal(codeOf('http://a..b/'), 'syntax')
  assert.equal(codeOf(`http://${'a'.repeat(64)}.example/`), 'syntax')
  for (const href of [
    'mailto:a@b',
    'javascript:void(0)',
    'ftp://h/',
    'java\nscript:x',
    `data:text/html,${'x'.repeat(99_999)}`,
  ]) {
    assert.equal(codeOf(href, 'http://h/'), 'scheme', href.slice(0, 30))
  }
  assert.equal(codeOf('http://h:0/'), 'port')
  assert.equal(codeOf('/'.padEnd(2_049, 'a'), 'http://h/'), 'too-long')
  assert.equal(codeOf('/'.padEnd(2_048 - 'http://h'.length, 'a'), 'http://h/'), 'none')
  assert.equal(codeOf(`/?x=${'%'.repeat(1_000)}`, 'http://h/'), 'too-long')
  const result = canonicalizeUrl('http://h/abc', undefined, { maxUrlLength: 10 })
  assert.ok('error' in result)
  assert.equal(result.error.message, 'canonicalizing "http://h/abc": 12 characters, at most 10 are taken')
})

const piece = fc.constantFrom(
  ...[
    '/',
    '.',
    '..',
    '%2e',
    '%',
    '%2',
    '%25',
    '%41',
    '%e9',
    '%2F',
    ';',
    ';jsessionid=',
    'a',
    'B',
    '1',
    '~',
    '?',
    '&',
    '=',
  ],
  ...[
    'utm_source=',
    'sid=',
    '#',
    ' ',
    '\t',
    '\n',
    '\\',
    'ü',
    '日',
    "'",
    '"',
    '|',
    '^',
    ':',
    '@',
    '+',
    '*',
    'http:',
    '//',
    '\ud800',
  ],
)
const hrefs = fc.oneof(
  fc.array(piece, { maxLength: 12 }).map((parts) => parts.join('')),
  fc.array(piece, { maxLength: 12 }).map((parts) => `http://h.example/${parts.join('')}`),
  fc.webUrl({ withQueryParameters: true, withFragments: true }),
  fc.string({ unit: 'binary', maxLength: 20 }),
)

test('any link: stable, and never an exception', () => {
  fc.assert(
    fc.property(hrefs, (href) => assertStable(href, 'http://h.example/d/p?q=1')),
    { numRuns: 5_000 },
  )
})

test('the fast path gives what the parser gives', () => {
  const plain = fc.constantFrom(...'/aZ09-._~:@!$()*+,=?&#%;', 'utm_id=', '..', 'gclid')
  const path = fc.array(fc.oneof(plain, piece), { maxLength: 12 }).map((parts) => `/${parts.join('')}`)
  for (const base of [
    'http://h.example/d/p',
    'https://h.example:8443/',
    'http://h.example./x',
    'http://u:p@[2001:db8::1]:81/',
  ]) {
    const resolve = createUrlResolver(base)
    const { origin } = new URL(base)
    fc.assert(
      fc.property(path, fc.boolean(), (text, absolute) => {
        const href = absolute ? origin + text : text
        // A leading blank goes to the parser, which drops it.
        const [fast, slow] = [resolve(href), resolve(` ${href}`)]
        if ('error' in slow) assert.equal('error' in fast ? fast.error.code : fast.key, slow.error.code)
        else assert.deepEqual(fast, slow)
      }),
      { numRuns: 2_000 },
    )
  }
})

const urls = suite('url')
const readJson = (name: string): unknown => JSON.parse(readFileSync(join(urls.folder, name), 'utf8'))

test('idempotence.json', { skip: urls.skip }, () => {
  const cases = readJson('idempotence.json') as string[]
  for (const href of cases) assertStable(href)
  assert.ok(cases.filter((href) => codeOf(href) === 'none').length > 10)
})

/** Fails on a difference that none of the reasons covers, and on a reason that covers nothing. */
function assertExplained<T>(
  differences: readonly T[],
  reasons: { [reason: string]: (difference: T) => boolean },
): void {
  for (const difference of differences) {
    assert.ok(
      Object.values(reasons).some((covers) => covers(difference)),
      JSON.stringify(difference),
    )
  }
  for (const [reason, covers] of Object.entries(reasons)) assert.ok(differences.some(covers), reason)
}

test('funky_ipv4.json: hosts in all spellings of an address', { skip: urls.skip }, () => {
  const differences: { host: string; ours: string | null }[] = []
  for (const [host, address] of Object.entries(readJson('funky_ipv4.json') as { [host: string]: string | null })) {
    const result = canonicalizeUrl(`http://${host}/`)
    const ours = 'error' in result ? null : result.host
    if (ours !== address) differences.push({ host, ours })
  }
  assertExplained(differences, {
    'no number to WHATWG, so a name': ({ host, ours }) => ours === host && /^0{2,}x/.test(host),
  })
})

test('path_dots.json', { skip: urls.skip }, () => {
  const { special } = readJson('path_dots.json') as { special: { [path: string]: string } }
  const differences: { path: string; ours: string; theirs: string }[] = []
  for (const [path, theirs] of Object.entries(special)) {
    const ours = keyOf(`http://h${path}`).slice('http://h'.length)
    if (ours !== theirs) differences.push({ path, ours, theirs })
  }
  assertExplained(differences, {
    'a backslash is a slash to WHATWG': ({ ours, theirs }) => ours === theirs.replaceAll('\\', '/'),
  })
})

test('semantic_precise.json', { skip: urls.skip }, () => {
  const unescaped = (url: string): string => {
    const once = url.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    return once === url ? url : unescaped(once)
  }
  const sorted = (url: string): string => [...url].sort().join('')
  const differences: { input: string; ours: string; theirs: string }[] = []
  const cases = Object.entries(readJson('semantic_precise.json') as { [input: string]: string })
  let equal = 0
  for (const [input, expected] of cases) {
    if (!/^https?:/i.test(expected)) {
      assert.notEqual(codeOf(input), 'none', input)
      continue
    }
    const result = canonicalizeUrl(input)
    const ours = 'error' in result ? result.error.code : result.key
    const theirs = expected.replace(/#.*/s, '')
    if (ours === theirs) equal++
    else differences.push({ input, ours, theirs })
  }
  assert.ok(equal > 80, `${equal}`)
  assertExplained(differences, {
    'no scheme is guessed: a link without one is relative': ({ input, ours }) =>
      ours === 'syntax' && !/^\s*http/i.test(input),
    'a host that WHATWG refuses is refused': ({ input, ours }) => ours === 'syntax' && !URL.canParse(input),
    'a host that cannot be resolved is refused': ({ ours, theirs }) => ours === 'syntax' && URL.canParse(theirs),
    'reserved characters stay escaped, and escapes are undone once only': ({ ours, theirs }) =>
      unescaped(ours) === unescaped(theirs),
    'slashes are not merged': ({ ours, theirs }) => ours.replace(/\/+/g, '/') === theirs.replace(/\/+/g, '/'),
    'an empty query goes': ({ ours, theirs }) => `${ours}?` === theirs,
    'parameters of one name keep their order': ({ ours, theirs }) => sorted(ours) === sorted(theirs),
    'characters are escaped as UTF-8, not as the bytes that they were read from': ({ input }) =>
      /[\u0080-\u00ff]/.test(input),
  })
})

test('url-resolve.csv', { skip: urls.skip }, () => {
  let compared = 0
  for (const line of readFileSync(join(urls.folder, 'url-resolve.csv'), 'utf8').split('\n')) {
    if (line.startsWith('#') || line.trim() === '') continue
    const fields = [...line.matchAll(/\s*(?:"([^"]*)"|([^,"]*))\s*(?:,|$)/g)].map((m) => (m[1] ?? m[2] ?? '').trim())
    const [href, base, expected] = fields as [string, string, string]
    const [ours, theirs] = [canonicalizeUrl(href, base === '' ? undefined : base), canonicalizeUrl(expected)]
    assert.deepEqual('error' in ours ? ours.error.code : ours, 'error' in theirs ? theirs.error.code : theirs, line)
    compared++
  }
  assert.ok(compared > 20)
})

test('wpt-urltestdata.json', { skip: urls.skip }, () => {
  type Case = { input: string; base: string | null; failure?: true; href?: string }
  const refusedHosts: { href: string; code: string }[] = []
  let compared = 0
  for (const entry of readJson('wpt-urltestdata.json') as (string | Case)[]) {
    if (typeof entry === 'string') continue
    const { input, base, failure, href } = entry
    const result = canonicalizeUrl(input, base ?? undefined)
    if (failure === true || !/^https?:/.test(href!)) {
      assert.ok('error' in result, input)
    } else if ('error' in result) refusedHosts.push({ href: href!, code: result.error.code })
    else {
      assert.deepEqual(result, { ...canonical(href!), fetchUrl: result.fetchUrl }, input)
      assertStable(input, base ?? undefined)
      compared++
    }
  }
  assert.ok(compared > 200)
  assertExplained(refusedHosts, {
    'nothing answers on port 0': ({ href, code }) => code === 'port' && new URL(href).port === '0',
    'a host with an empty label': ({ href, code }) => code === 'syntax' && /^\.|\.\./.test(new URL(href).hostname),
  })
})
