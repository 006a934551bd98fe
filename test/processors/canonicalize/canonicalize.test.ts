import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCanonicalize } from '../../../processors/canonicalize/canonicalize.ts'
import { rulesStore } from '../../../processors/canonicalize/rules-store.ts'
import { createLinksWriter } from '../../../schemas/links.ts'
import {
  type Candidate,
  type Control,
  type Decision,
  type DiscoveredUrls,
  type LinkKind,
  linkFlags,
} from '../../../schemas/types.ts'
import { type Bench, createBench } from '../context.ts'

const topic = 'weir.discovered-urls'
type In = DiscoveredUrls | Control

function setUp(
  options: Partial<Parameters<typeof createCanonicalize>[0]> = {},
): Bench<string, In> & { restart(): void } {
  const bench = createBench<string, In>([rulesStore])
  const restart = (): void => bench.start(createCanonicalize({ discoveredTopic: topic, ...options }))
  restart()
  return { ...bench, restart }
}

function scope(mode: Control['mode'], ports: number[] = [], at = 0): Control {
  return { kind: 'scope', mode, host: null, site: null, ports, why: 'option', at }
}
function scopeHost(host: string, site = host, ports: number[] = [], at = 0): Control {
  return { kind: 'scope-host', mode: 'host', host, site, ports, why: 'seed', at }
}
type TestLink = string | readonly [href: string, kind: LinkKind, flags: number]
function page(source: string, links: readonly TestLink[], more: Partial<DiscoveredUrls> = {}): DiscoveredUrls {
  const writer = createLinksWriter()
  for (const link of links) {
    if (typeof link === 'string') writer.add('anchor', 0, link)
    else writer.add(link[1], link[2], link[0])
  }
  return {
    sourceKind: 'page',
    source,
    depth: 1,
    hops: 0,
    baseUrl: source,
    fetchId: 'f1',
    cash: 0,
    links: writer.bytes(),
    linkCount: links.length,
    excessCount: 0,
    ...more,
  }
}
const pipePage = (bench: Bench<string, In>, value: DiscoveredUrls): void => bench.pipe(value.source, value)
const candidates = (bench: Bench<string, In>): string[] => bench.take('canonicalized').map((r) => r.key as string)
function decision(bench: Bench<string, In>): Decision {
  const records = bench.take('decisions')
  assert.equal(records.length, 1)
  const value = records[0]!.value as Decision
  assert.equal(
    value.reasons.reduce((sum, reason) => sum + reason.count, 0),
    value.total,
  )
  return value
}
const countsOf = (value: Decision): { [code: string]: number } =>
  Object.fromEntries(value.reasons.map((reason) => [reason.code, reason.count]))

test('links become candidates, refusals are counted, the counts add up', () => {
  const bench = setUp({ blockedDomains: ['bad.example'], maxUrlLength: 100 })
  bench.pipe('scope', scope('any'))
  const source = 'http://a.example/d/p'
  pipePage(
    bench,
    page(source, [
      'x?b=1&a=2&utm_source=z',
      'http://c.example/',
      '#top',
      'mailto:x@y',
      'http://',
      'http://c.example:8080/',
      'http://www.bad.example/',
      `/${'l'.repeat(200)}`,
      ['/no', 'anchor', linkFlags.nofollow],
      '/d/x?a=2&b=1',
    ]),
  )
  const records = bench.take('canonicalized')
  assert.deepEqual(
    records.map((r) => r.key),
    ['http://a.example/d/x?a=2&b=1', 'http://c.example/', 'http://a.example/d/p'],
  )
  assert.deepEqual(records[0], {
    child: 'canonicalized',
    key: 'http://a.example/d/x?a=2&b=1',
    timestamp: 1_000,
    value: {
      fetchUrl: 'http://a.example/d/x?b=1&a=2',
      host: 'a.example',
      site: 'a.example',
      source,
      depth: 1,
      hops: 0,
      linkKind: 'anchor',
      entryKind: 'page',
      seedChain: false,
      improved: false,
    } satisfies Candidate,
  })
  const value = decision(bench)
  assert.deepEqual(countsOf(value), {
    admitted: 3,
    scheme: 1,
    syntax: 1,
    port: 1,
    'blocked-domain': 1,
    'too-long': 1,
    nofollow: 1,
    'repeat-cache': 1,
  })
  assert.equal(value.fetchId, 'f1')
  assert.equal(value.at, 1_000)
  assert.deepEqual(value.reasons.find((r) => r.code === 'scheme')!.examples, ['mailto:x@y'])
})

test('at most three examples a code, shortened', () => {
  const bench = setUp()
  pipePage(bench, page('http://a.example/', ['/1', '/2', '/3', '/4', `javascript:${'x'.repeat(5_000)}`]))
  const value = decision(bench)
  assert.deepEqual(value.reasons[0], { code: 'out-of-scope', count: 4, examples: ['/1', '/2', '/3'] })
  assert.ok(value.reasons[1]!.examples[0]!.length < 400)
})

test('scope host, domain and any', () => {
  const links = ['http://www.a.example/', 'http://b.a.example/', 'http://other.test/']
  for (const [mode, expected] of [
    ['host', [links[0]]],
    ['domain', links.slice(0, 2)],
    ['any', links],
  ] as const) {
    const bench = setUp()
    bench.pipe('scope', scope(mode))
    bench.pipe('scope-host:www.a.example', scopeHost('www.a.example', 'a.example'))
    pipePage(bench, page('http://www.a.example/s', links))
    assert.deepEqual(candidates(bench), expected, mode)
  }
})

test('nothing is admitted before there is a scope, and nothing is lost', () => {
  const bench = setUp()
  pipePage(bench, page('http://a.example/', ['/x']))
  assert.deepEqual(candidates(bench), [])
  assert.deepEqual(countsOf(decision(bench)), { 'out-of-scope': 1 })
  bench.pipe('scope-host:a.example', scopeHost('a.example'))
  assert.deepEqual(bench.takeSeeks(), [])
  bench.pipe('scope', scope('host'))
  assert.deepEqual(bench.takeSeeks(), [topic])
  pipePage(bench, page('http://a.example/', ['/x']))
  assert.deepEqual(candidates(bench), ['http://a.example/x'])
})

test('a rule that admits what was refused reads the links again, an equal one does not', () => {
  const bench = setUp()
  bench.pipe('scope', scope('host'))
  bench.pipe('scope-host:a.example', scopeHost('a.example'))
  assert.deepEqual(bench.takeSeeks(), [], 'nothing was refused yet')
  const first = page('http://a.example/', ['/x', 'http://b.example/', 'http://a.example:81/'])
  pipePage(bench, first)
  assert.deepEqual(candidates(bench), ['http://a.example/x'])

  bench.pipe('scope-host:c.example', scopeHost('c.example'))
  assert.deepEqual(bench.takeSeeks(), [], 'no link to c.example was refused')
  bench.pipe('scope-host:b.example', scopeHost('b.example'))
  assert.deepEqual(bench.takeSeeks(), [topic])
  bench.pipe('scope-host:b.example', { ...scopeHost('b.example'), at: 5, why: 'again' })
  assert.deepEqual(bench.takeSeeks(), [])

  pipePage(bench, first)
  assert.deepEqual(candidates(bench), ['http://a.example/x', 'http://b.example/'], 'the cache was cleared')
  bench.pipe('scope', scope('host', [81]))
  assert.deepEqual(bench.takeSeeks(), [topic])
  pipePage(bench, first)
  assert.deepEqual(candidates(bench), ['http://a.example/x', 'http://b.example/', 'http://a.example:81/'])
})

test('a wider mode reads the links again; a narrower one and a taken-back rule refuse from then on', () => {
  const bench = setUp()
  bench.pipe('scope', scope('host'))
  bench.pipe('scope-host:www.a.example', scopeHost('www.a.example', 'a.example'))
  pipePage(bench, page('http://www.a.example/', ['http://b.a.example/1']))
  bench.pipe('scope', scope('domain'))
  assert.deepEqual(bench.takeSeeks(), [topic])
  bench.pipe('scope-host:www.a.example', null)
  assert.deepEqual(bench.takeSeeks(), [])
  bench.take()
  pipePage(bench, page('http://www.a.example/', ['http://b.a.example/1']))
  assert.deepEqual(countsOf(decision(bench)), { 'out-of-scope': 1 })
})

test('rules outlive the task; after a restart what was refused is unknown, so any wider rule reads again', () => {
  const bench = setUp()
  bench.pipe('scope', scope('host'))
  bench.pipe('scope-host:a.example', scopeHost('a.example'))
  bench.restart()
  bench.pipe('scope-host:b.example', scopeHost('b.example'))
  assert.deepEqual(bench.takeSeeks(), [], 'nothing was ever refused')
  pipePage(bench, page('http://a.example/', ['/x', 'http://c.example/']))
  assert.deepEqual(candidates(bench), ['http://a.example/x'])
  bench.restart()
  bench.pipe('scope-host:d.example', scopeHost('d.example'))
  assert.deepEqual(bench.takeSeeks(), [topic])
  bench.restart()
  bench.pipe('scope-host:e.example', scopeHost('e.example'))
  assert.deepEqual(bench.takeSeeks(), [], 'read again already')
})

test('the cache drops repeats unless the depth is lower', () => {
  const bench = setUp()
  bench.pipe('scope', scope('any'))
  const at = (depth: number): string[] => {
    pipePage(bench, page('http://a.example/', ['/x'], { depth }))
    return candidates(bench)
  }
  assert.equal(at(3).length, 1)
  assert.equal(at(3).length, 0)
  assert.equal(at(4).length, 0)
  assert.equal(at(2).length, 1)
  assert.equal(at(3).length, 0)
  bench.restart()
  assert.equal(at(3).length, 1)
})

test("a seed's redirect joins the scope", () => {
  const bench = setUp()
  bench.pipe('scope', scope('domain'))
  bench.pipe('scope-host:a.example', scopeHost('a.example'))
  const chain = [['http://www.b.example:8080/', 'redirect', linkFlags.seedChain]] as const
  const source = 'http://a.example/'
  pipePage(bench, page(source, chain, { depth: 0 }))
  const [record] = bench.take('canonicalized')
  assert.equal((record!.value as Candidate).seedChain, true)
  const [control] = bench.take('controls')
  assert.equal(control!.key, 'scope-host:www.b.example')
  assert.deepEqual(control!.value, {
    kind: 'scope-host',
    mode: 'domain',
    host: 'www.b.example',
    site: 'b.example',
    ports: [8080],
    why: `redirect of seed ${source}`,
    at: 1_000,
  } satisfies Control)
  // Written once, and in force when it comes back.
  pipePage(bench, page('http://a.example/2', [['http://www.b.example:8080/2', 'redirect', linkFlags.seedChain]]))
  assert.deepEqual(bench.take('controls'), [])
  pipePage(bench, page('http://a.example/3', ['http://x.b.example/']))
  bench.take()
  bench.pipe(control!.key as string, control!.value as Control)
  assert.deepEqual(bench.takeSeeks(), [topic])
  pipePage(bench, page('http://a.example/3', ['http://x.b.example/']))
  assert.deepEqual(candidates(bench), ['http://x.b.example/'])
  // An anchor does not carry the right of the chain.
  pipePage(bench, page('http://a.example/4', [['http://z.example/', 'anchor', linkFlags.seedChain]]))
  assert.deepEqual(candidates(bench), [])
})

test('a record with broken links leaves no trace', () => {
  const bench = setUp()
  bench.pipe('scope', scope('any'))
  const good = page('http://a.example/', ['/x'])
  const broken = { ...good, links: Buffer.concat([good.links, Buffer.from([0, 0, 200])]) }
  assert.throws(() => pipePage(bench, broken), { code: 'links-malformed' })
  bench.take()
  pipePage(bench, good)
  assert.deepEqual(candidates(bench), ['http://a.example/x'])
})

test('seeds have no base; a record without links says nothing; tombstones and unknown rules are passed over', () => {
  const bench = setUp()
  bench.pipe('scope', scope('any'))
  bench.pipe(
    'seed:1',
    page('seed:1', [['http://a.example', 'seed', 0], '/relative'], { sourceKind: 'seed', baseUrl: '' }),
  )
  const [record] = bench.take('canonicalized')
  assert.equal(record!.key, 'http://a.example/')
  assert.equal((record!.value as Candidate).seedChain, true)
  assert.deepEqual(countsOf(decision(bench)), { admitted: 1, syntax: 1 })
  pipePage(bench, page('http://a.example/', []))
  bench.pipe('http://a.example/', null)
  bench.pipe('pause:a.example', scope('host'))
  pipePage(bench, page('http://a.example/', ['http://b.example/']))
  assert.deepEqual(candidates(bench), ['http://b.example/'])
  assert.equal(bench.take().length, 1)
})
