import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createCanonicalize } from '../../processors/canonicalize/canonicalize.ts'
import { rulesStore } from '../../processors/canonicalize/rules-store.ts'
import { createDedupe, seenStore } from '../../processors/dedupe.ts'
import { siteOfKey } from '../../processors/site.ts'
import { stringSerde, topicSerde } from '../../schemas/codec.ts'
import { partitionOf } from '../../schemas/hash.ts'
import { createLinksWriter } from '../../schemas/links.ts'
import { type Candidate, type Control, type Decision, type DiscoveredUrls, linkFlags } from '../../schemas/types.ts'
import type { ApplicationOptions } from '../../topology/streams/application.ts'
import { TopologyTestDriver } from '../../topology/streams/driver.ts'
import { Topology } from '../../topology/streams/topology.ts'
import type { StreamPartitioner } from '../../topology/streams/types.ts'
import { type TopicName, topicName, topicSpecs } from '../../topology/topics.ts'

const partitions = 2
const topic = (name: TopicName): string => topicName('t', name)
const byKey: StreamPartitioner<string, unknown> = (key, _value, count) => partitionOf(key, count)
const bySite: StreamPartitioner<string, unknown> = (key, _value, count) => partitionOf(siteOfKey(key), count)
const toAll: StreamPartitioner<string, unknown> = (_key, _value, count) => Array.from({ length: count }, (_, i) => i)

function applications(): ApplicationOptions[] {
  const source = <V>(name: TopicName) => ({
    topics: [topic(name)],
    keySerde: stringSerde,
    valueSerde: topicSerde<V>(name),
  })
  const sink = <V>(name: TopicName, partitioner: StreamPartitioner<string, V>) => ({
    topic: topic(name),
    keySerde: stringSerde,
    valueSerde: topicSerde<V>(name),
    partitioner,
  })
  const canonicalize = new Topology('canonicalize')
    .addSource('discovered-urls', source<DiscoveredUrls>('discovered-urls'))
    .addSource('rules', source<Control>('controls'))
    .addProcessor('canonicalize', createCanonicalize({ discoveredTopic: topic('discovered-urls') }), [
      'discovered-urls',
      'rules',
    ])
    .addSink('canonicalized', sink<Candidate>('canonicalized', byKey), ['canonicalize'])
    .addSink('controls', sink<Control>('controls', toAll), ['canonicalize'])
    .addSink('decisions', sink<Decision>('decisions', bySite), ['canonicalize'])
    .addStateStore(rulesStore, ['canonicalize'])
  const dedupe = new Topology('dedupe')
    .addSource('canonicalized', source<Candidate>('canonicalized'))
    .addProcessor('dedupe', createDedupe(), ['canonicalized'])
    .addSink('unseen', sink<Candidate>('unseen', bySite), ['dedupe'])
    .addSink('decisions', sink<Decision>('decisions', bySite), ['dedupe'])
    .addStateStore(seenStore, ['dedupe'])
  return [
    { applicationId: 't-canonicalize', topology: canonicalize, guarantee: 'exactly_once_v2' },
    { applicationId: 't-dedupe', topology: dedupe, guarantee: 'exactly_once_v2' },
  ]
}

type Event =
  | { is: 'page'; source: string; links: string[]; depth: number }
  | { is: 'chain'; source: string; href: string }
  | { is: 'host'; host: string }
  | { is: 'scope'; mode: Control['mode'] }
  | { is: 'restart'; application: string }
  | { is: 'abort' }

function run(events: readonly Event[]): {
  unseen: Candidate[]
  keys: string[]
  decisions: Decision[]
  controls: string[]
} {
  const driver = new TopologyTestDriver({
    applications: applications(),
    topics: topicSpecs('t', partitions),
    deadLetterTopic: topic('dead-letters'),
    startWallMs: 1_000,
  })
  const discovered = driver.createInputTopic(
    topic('discovered-urls'),
    stringSerde,
    topicSerde<DiscoveredUrls>('discovered-urls'),
  )
  const controls = driver.createInputTopic(topic('controls'), stringSerde, topicSerde<Control>('controls'), toAll)
  const rule = { host: null, site: null, ports: [], why: 'test', at: 0 }
  const page = (source: string, links: readonly string[], depth: number, chain: boolean): void => {
    const writer = createLinksWriter()
    for (const href of links) writer.add(chain ? 'redirect' : 'anchor', chain ? linkFlags.seedChain : 0, href)
    const { count: linkCount } = writer
    const common = {
      sourceKind: 'page',
      source,
      depth,
      baseUrl: source,
      fetchId: '',
      hops: 0,
      cash: 0,
      excessCount: 0,
    } as const
    discovered.enqueue(source, { ...common, links: writer.bytes(), linkCount })
  }
  let isAborting = false
  for (const event of events) {
    if (event.is === 'page') page(event.source, event.links, event.depth, false)
    else if (event.is === 'chain') page(event.source, [event.href], 0, true)
    else if (event.is === 'host') {
      controls.enqueue(`scope-host:${event.host}`, { ...rule, kind: 'scope-host', mode: 'host', host: event.host })
    } else if (event.is === 'scope') controls.enqueue('scope', { ...rule, kind: 'scope', mode: event.mode })
    else if (event.is === 'restart') driver.restart(event.application)
    // Not before the next record is written: that is a commit too.
    if (event.is === 'abort') isAborting = true
    else if (event.is !== 'restart') {
      if (isAborting) driver.failNextCommit('aborted')
      isAborting = false
      driver.runUntilIdle()
    }
  }
  driver.advanceWallClockTime(60_000)
  const read = <V>(name: TopicName) =>
    driver.createOutputTopic(topic(name), stringSerde, topicSerde<V>(name)).readRecordsToList()
  const unseen = read<Candidate>('unseen')
  const result = {
    unseen: unseen.map((record) => record.value!),
    keys: unseen.map((record) => record.key),
    decisions: read<Decision>('decisions').map((record) => record.value!),
    controls: read<Control>('controls').map((record) => record.key),
  }
  driver.close()
  return result
}

test('links become unseen URLs, once, whatever the order of rules and links', () => {
  const hosts = ['a.example', 'b.example', 'www.c.example']
  const host = fc.constantFrom(...hosts)
  const link = fc.oneof(
    fc.constantFrom('/1', '/2?b=1&a=2', '2?a=2&b=1', 'mailto:x@y'),
    fc.tuple(host, fc.nat(3)).map(([h, n]) => `http://${h}/${n}`),
  )
  const event: fc.Arbitrary<Event> = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        is: fc.constant('page' as const),
        source: fc.tuple(host, fc.nat(2)).map(([h, n]) => `http://${h}/${n}`),
        links: fc.array(link, { minLength: 1, maxLength: 4 }),
        depth: fc.nat(2),
      }),
    },
    fc.record({ is: fc.constant('host' as const), host }),
    fc.record({ is: fc.constant('scope' as const), mode: fc.constant('host' as const) }),
    fc.record({ is: fc.constant('restart' as const), application: fc.constantFrom('t-canonicalize', 't-dedupe') }),
    fc.constant({ is: 'abort' as const }),
  )
  fc.assert(
    fc.property(fc.array(event, { maxLength: 12 }), (events) => {
      const { unseen, keys, decisions } = run(events)
      const listed = new Set(events.filter((e) => e.is === 'host').map((e) => e.host))
      const isScoped = events.some((e) => e.is === 'scope')
      const expected = new Map<string, number>()
      for (const e of events) {
        if (e.is !== 'page') continue
        for (const href of e.links) {
          const url = new URL(href, e.source)
          if (!isScoped || !listed.has(url.hostname)) continue
          url.searchParams.sort()
          expected.set(url.href, Math.min(expected.get(url.href) ?? 255, e.depth))
        }
      }
      const admitted = keys.filter((_, i) => !unseen[i]!.improved)
      assert.deepEqual(admitted.sort(), [...expected.keys()].sort())
      for (const [key, depth] of expected) {
        assert.equal(Math.min(...unseen.filter((_, i) => keys[i] === key).map((value) => value.depth)), depth, key)
      }
      for (const { total, reasons } of decisions) {
        assert.equal(
          reasons.reduce((sum, reason) => sum + reason.count, 0),
          total,
        )
      }
      const sum = (processor: string, code: string): number =>
        decisions
          .filter((d) => d.processor === processor)
          .flatMap((d) => d.reasons)
          .filter((reason) => reason.code === code)
          .reduce((total, reason) => total + reason.count, 0)
      assert.equal(sum('canonicalize', 'admitted'), unseen.length + sum('dedupe', 'repeat'))
    }),
    { numRuns: 150 },
  )
})

test('what a seed redirects to joins the scope of every task, links refused before included', () => {
  const later = ['http://www.b.example/1', 'http://www.b.example/2', 'http://www.b.example/3']
  const { keys, controls } = run([
    { is: 'scope', mode: 'host' },
    { is: 'host', host: 'a.example' },
    ...later.map((href, i) => ({ is: 'page' as const, source: `http://a.example/${i}`, links: [href], depth: 1 })),
    { is: 'chain', source: 'http://a.example/', href: 'http://www.b.example/' },
  ])
  assert.deepEqual(keys.sort(), ['http://www.b.example/', ...later])
  assert.equal(controls.filter((key) => key === 'scope-host:www.b.example').length, partitions)
})
