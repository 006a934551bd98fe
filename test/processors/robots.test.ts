import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { checkRobots, maxRobotsBytes, parseRobots } from '../../processors/robots.ts'
import { suite } from './suites.ts'
import { parseTextProto, type TextProto } from './textproto.ts'

function allowed(robots: string | Uint8Array, url: string, token = 'weir'): boolean {
  const body = typeof robots === 'string' ? Buffer.from(robots) : robots
  return checkRobots(parseRobots(body, token), url).allowed
}
const forAll = (...lines: string[]): string => ['User-agent: *', ...lines].join('\n')

test('R5: %2A and %24 are characters, not wildcards', () => {
  const star = forAll('Disallow: /a%2Ab')
  assert.equal(allowed(star, 'http://h/a*b'), false)
  assert.equal(allowed(star, 'http://h/a%2ab'), false)
  assert.equal(allowed(star, 'http://h/aXb'), true)
  const dollar = forAll('Disallow: /a%24')
  assert.equal(allowed(dollar, 'http://h/a$'), false)
  assert.equal(allowed(dollar, 'http://h/a$b'), false)
  assert.equal(allowed(dollar, 'http://h/a'), true)
  assert.equal(allowed(forAll('Disallow: /a$b'), 'http://h/a$bc'), false)
})

test('R6: a pattern without leading slash is taken as it is', () => {
  const test = forAll('Disallow: */test')
  assert.equal(allowed(test, 'http://h/test'), false)
  assert.equal(allowed(test, 'http://h/a/b/testing'), false)
  assert.equal(allowed(test, 'http://h/tes'), true)
  const replies = forAll('Disallow: /users/*/replies')
  assert.equal(allowed(replies, 'http://h/'), true)
  assert.equal(allowed(replies, 'http://h/users/7/replies'), false)
  assert.equal(allowed(forAll('Disallow: x'), 'http://h/x'), true)
})

test('R7: prefixes, the end mark, and no falling through to everyone', () => {
  const prefixes = forAll('Disallow: /a', 'Disallow: /ab')
  assert.equal(allowed(prefixes, 'http://h/ac'), false)
  assert.equal(allowed(forAll('Disallow: /*a$'), 'http://h/aXa'), false)
  assert.equal(allowed(forAll('Disallow: /*a$'), 'http://h/aXab'), true)
  const groups = 'User-agent: *\nAllow: /x\n\nUser-agent: weir\nDisallow: /x\n'
  assert.equal(allowed(groups, 'http://h/x'), false)
  assert.equal(allowed(groups, 'http://h/x', 'other'), true)
})

test('R9: only a user-agent line after a rule starts a group; an empty disallow says nothing', () => {
  const one = 'User-agent: a\n\nSitemap: http://h/s.xml\nFoo: bar\nUser-agent: weir\n\nDisallow: /x\n'
  assert.equal(allowed(one, 'http://h/x', 'a'), false)
  assert.equal(allowed(one, 'http://h/x'), false)
  assert.deepEqual(parseRobots(Buffer.from(one), 'weir').sitemaps, ['http://h/s.xml'])
  assert.equal(allowed(forAll('Disallow: /x', 'Disallow:'), 'http://h/x'), false)
})

test('R10: a byte order mark is skipped, bytes that are not UTF-8 cost their line alone', () => {
  assert.equal(allowed('\ufeffUser-agent: *\nDisallow: /x', 'http://h/x'), false)
  const latin1 = Buffer.from('User-agent: *\nDisallow: /\xfc\nDisallow: /x', 'latin1')
  assert.equal(allowed(latin1, 'http://h/x'), false)
  assert.equal(allowed(latin1, 'http://h/y'), true)
})

test('R11: equals signs, double slashes, a query without path, characters beyond ASCII', () => {
  assert.equal(allowed(forAll('Disallow: /*?id=1'), 'http://h/a?id=12'), false)
  assert.equal(allowed(forAll('Disallow: /*?id=1'), 'http://h/a?di=1'), true)
  assert.equal(allowed(forAll('Disallow: //path'), 'http://h//path'), false)
  assert.equal(allowed(forAll('Disallow: //path'), '//path'), false)
  assert.equal(allowed(forAll('Disallow: /?x'), 'http://h?x'), false)
  for (const rule of ['/ü', '/%C3%BC', '/%c3%bc']) {
    for (const path of ['/ü', '/%C3%BC', '/%c3%bc']) {
      assert.equal(allowed(forAll(`Disallow: ${rule}`), `http://h${path}`), false, `${rule} ${path}`)
    }
  }
  for (const rule of ['/~u', '/%7Eu', '/%7eu']) {
    for (const path of ['/~u', '/%7Eu', '/%7eu']) {
      assert.equal(allowed(forAll(`Disallow: ${rule}`), `http://h${path}`), false, `${rule} ${path}`)
    }
  }
  assert.equal(allowed(forAll('Disallow: /', 'Allow: /~u'), 'http://h/%7Eu'), true)
  assert.equal(allowed(forAll('Disallow: /a%2Fb'), 'http://h/a/b'), true)
  // Escapes that need not be there make no rule more specific.
  assert.equal(allowed(forAll('Allow: /%62%61%7A', 'Disallow: /bazq'), 'http://h/%62%61%7Aq'), false)
})

test('R14: a crawl-delay is kept as asked, fractions too', () => {
  const delayOf = (value: string): number | null =>
    parseRobots(Buffer.from(forAll(`Crawl-delay: ${value}`)), 'weir').crawlDelayMs
  assert.equal(delayOf('0.1'), 100)
  assert.equal(delayOf('86400'), 86_400_000)
  assert.equal(delayOf('.5'), 500)
  assert.equal(delayOf('5 # seconds'), 5000)
  assert.equal(delayOf('soon'), null)
  assert.equal(delayOf('-1'), null)
  const own = 'User-agent: weir\nCrawl-delay: 1\nUser-agent: *\nCrawl-delay: 30\nDisallow: /x\n'
  assert.equal(parseRobots(Buffer.from(own), 'weir').crawlDelayMs, 1000)
  assert.equal(parseRobots(Buffer.from(own), 'other').crawlDelayMs, 30_000)
  // A delay is no rule of the standard: it must not part the agents of one group (RFC 9309 §2.2.4).
  assert.equal(allowed(own, 'http://h/x'), false)
  const twice = 'User-agent: weir\nCrawl-delay: 4\nCrawl-delay: 2\n'
  assert.equal(parseRobots(Buffer.from(twice), 'weir').crawlDelayMs, 4000)
})

test('the verdict names the line and the rule', () => {
  const rules = parseRobots(
    Buffer.from('# hello\r\nUser-Agent: Weir/2.0\r\n  Disallow :  /x  # no\r\nAllow: /x/y'),
    'weir',
  )
  assert.equal(rules.agent, 'weir')
  assert.deepEqual(checkRobots(rules, 'http://h/x'), { allowed: false, line: 3, rule: 'Disallow :  /x' })
  assert.deepEqual(checkRobots(rules, 'http://h/x/y?q#f'), { allowed: true, line: 4, rule: 'Allow: /x/y' })
  assert.deepEqual(checkRobots(rules, 'http://h/'), { allowed: true, line: null, rule: null })
  assert.equal(parseRobots(Buffer.from(forAll('Disallow: /')), 'weir').agent, '*')
  assert.equal(parseRobots(Buffer.from('User-agent: other\nDisallow: /'), 'weir').agent, null)
})

test('robots.txt itself is always allowed', () => {
  assert.equal(allowed(forAll('Disallow: /'), 'http://h/robots.txt'), true)
  assert.equal(allowed(forAll('Disallow: /'), 'http://h/robots.txt.bak'), false)
})

test('groups of one token are one group, everyone counts only without', () => {
  const robots = 'User-agent: WEIR\nDisallow: /a\nUser-agent: *\nDisallow: /b\nUser-agent: weir\nDisallow: /c\n'
  assert.deepEqual(
    ['/a', '/b', '/c'].map((path) => allowed(robots, path)),
    [false, true, false],
  )
  assert.deepEqual(
    ['/a', '/b', '/c'].map((path) => allowed(robots, path, 'other')),
    [true, false, true],
  )
})

test('misspelt names are understood', () => {
  for (const name of ['dissallow', 'dissalow', 'disalow', 'diasllow', 'disallaw']) {
    assert.equal(allowed(`useragent: weir\n${name}: /x`, '/x'), false, name)
  }
  assert.deepEqual(parseRobots(Buffer.from('Site-map: http://h/s'), 'weir').sitemaps, ['http://h/s'])
})

test('what is over the bound is not read, nor the line that the bound cuts', () => {
  const filler = `#${'x'.repeat(98)}\n`
  const head = 'User-agent: *\nDisallow: /early\n'
  const count = Math.floor((maxRobotsBytes - head.length) / filler.length)
  const left = maxRobotsBytes - head.length - count * filler.length
  // The bound falls right after "Disallow: /", which alone would close the site.
  const cut = `${'\n'.repeat(left)}Disallow: /`
  const body = `${head}${filler.repeat(count)}${cut.slice(cut.length - left)}late\nDisallow: /later\n`
  assert.ok(left > 'Disallow: /'.length)
  assert.equal(body.slice(0, maxRobotsBytes).endsWith('\nDisallow: /'), true)
  assert.equal(allowed(body, '/early'), false)
  assert.equal(allowed(body, '/late'), true)
  assert.equal(allowed(body, '/later'), true)
  const exact = body.slice(0, maxRobotsBytes)
  assert.equal(allowed(exact, '/late'), false)
  assert.equal(allowed(`${exact}\nDisallow: /later`, '/late'), false)
})

test('a line is cut at 16,664 bytes', () => {
  const path = `/${'a'.repeat(20_000)}`
  const rules = parseRobots(Buffer.from(forAll(`Disallow: ${path}`)), 'weir')
  assert.equal(rules.rules[0]!.pattern.length, 16_664 - 'Disallow: '.length)
})

test('the wildcard matcher equals a slow and obvious one', () => {
  const slow = (pattern: string, path: string): boolean => {
    if (pattern === '$') return path === ''
    if (pattern === '') return true
    if (pattern[0] !== '*') return pattern[0] === path[0] && slow(pattern.slice(1), path.slice(1))
    for (let i = 0; i <= path.length; i++) if (slow(pattern.slice(1), path.slice(i))) return true
    return false
  }
  const letters = fc.string({ unit: fc.constantFrom('a', 'b', '/'), maxLength: 8 })
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('a', 'b', '/', '*'), maxLength: 8 }),
      fc.boolean(),
      letters,
      (body, end, path) => {
        const pattern = `/${body}${end ? '$' : ''}`
        assert.equal(allowed(forAll(`Disallow: ${pattern}`), `/${path}`), !slow(pattern, `/${path}`), pattern)
      },
    ),
    { numRuns: 2000 },
  )
})

test('any bytes are read, and each verdict names a line of the file', () => {
  const piece = fc.constantFrom(
    'User-agent: *\n',
    'User-agent: weir',
    'Disallow: /',
    'Allow:/a*',
    '\r',
    '\n',
    ':',
    '#',
    '$',
  )
  fc.assert(
    fc.property(
      fc.array(
        fc.oneof(
          piece.map((p) => Buffer.from(p)),
          fc.uint8Array({ maxLength: 6 }),
        ),
      ),
      fc.webUrl(),
      (parts, url) => {
        const body = Buffer.concat(parts)
        const verdict = checkRobots(parseRobots(body, 'weir'), url)
        if (verdict.line === null) assert.equal(verdict.allowed, true)
        else {
          const line = body.toString('utf8').split(/\r\n|\r|\n/)[verdict.line - 1]!
          assert.ok(line.includes(verdict.rule!))
        }
      },
    ),
  )
})

test('hostile patterns take linear time', () => {
  const url = `http://h/${'a'.repeat(2_000)}`
  const unit = 'a'.repeat(30)
  const hostile = [`/${'*a'.repeat(8_000)}b`, `/*${unit}b`.repeat(500), `/*${'a'.repeat(1_000)}b*${'a'.repeat(900)}`]
  for (const pattern of hostile) {
    const rules = parseRobots(Buffer.from(forAll(...Array.from({ length: 30 }, () => `Disallow: ${pattern}`))), 'weir')
    const before = performance.now()
    assert.equal(checkRobots(rules, url).allowed, true)
    assert.ok(performance.now() - before < 1_000, pattern.slice(0, 40))
  }
})

const spec = suite('robots-spec')
describe('robots-spec', { skip: spec.skip }, () => {
  if (spec.skip !== false) return
  for (const file of readdirSync(spec.folder).filter((name) => name.endsWith('.textproto'))) {
    test(file, () => {
      const { tests } = parseTextProto(readFileSync(join(spec.folder, file), 'utf8')) as { tests: TextProto[] }
      let verdicts = 0
      for (const { robotstxt, test_expectations: expectations } of tests) {
        for (const expected of expectations as { [field: string]: Buffer | string }[]) {
          const url = expected.testurl!.toString()
          const verdict = checkRobots(parseRobots(robotstxt as Buffer, expected.useragent!.toString()), url)
          const outcome = verdict.allowed ? 'ALLOWED' : 'DISALLOWED'
          assert.equal(outcome, expected.expected_outcome, `${url} ${expected.useragent}\n${robotstxt}`)
          verdicts++
        }
      }
      assert.ok(verdicts > 0)
    })
  }
})

const real = suite('robots-real')
test('robots-real: every file is read, quickly', { skip: real.skip }, () => {
  let rules = 0
  const before = performance.now()
  for (const file of readdirSync(real.folder)) {
    const body = readFileSync(join(real.folder, file))
    for (const token of ['weir', 'googlebot']) {
      const parsed = parseRobots(body, token)
      rules += parsed.rules.length
      for (const rule of parsed.rules.slice(0, 50)) {
        // A rule's own pattern, as a path, is matched by that rule or one that is at least as long.
        const path = rule.pattern.replaceAll('*', '').replace(/\$$/, '')
        const verdict = checkRobots(parsed, path)
        if (rule.pattern.startsWith('/'))
          assert.notEqual(verdict.line, path === '/robots.txt' ? 0 : null, `${file}: ${rule.text}`)
      }
    }
  }
  assert.ok(rules > 1_000)
  assert.ok(performance.now() - before < 5_000)
})
