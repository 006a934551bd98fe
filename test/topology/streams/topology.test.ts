import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stringSerde } from '../../../topology/streams/serdes.ts'
import { Topology } from '../../../topology/streams/topology.ts'
import { byKey, counts } from './sample.ts'

const serdes = { keySerde: stringSerde, valueSerde: stringSerde }
const nothing = () => ({ process() {} })

test('describe has the shape of Java', () => {
  const topology = new Topology('sample')
    .addSource('links', { topics: ['a', 'b'], ...serdes })
    .addSource('rules', { topics: ['c'], ...serdes })
    .addProcessor('split', nothing, ['links', 'rules'])
    .addProcessor('count', nothing, ['split'])
    .addSink('out', { topic: 'd', partitioner: byKey, ...serdes }, ['count', 'split'])
    .addStateStore(counts, ['count'])
    .addSource('other', { topics: ['e'], ...serdes })
    .addProcessor('end', nothing, ['other'])
  assert.equal(
    topology.describe(),
    `Topologies:
   Sub-topology: 0
    Source: links (topics: [a, b])
      --> split
    Source: rules (topics: [c])
      --> split
    Processor: split (stores: [])
      --> count, out
      <-- links, rules
    Processor: count (stores: [counts])
      --> out
      <-- split
    Sink: out (topic: d)
      <-- split, count

  Sub-topology: 1
    Source: other (topics: [e])
      --> end
    Processor: end (stores: [])
      --> none
      <-- other

`,
  )
})

test('a shared store joins sub-topologies', () => {
  const apart = new Topology('apart')
    .addSource('s1', { topics: ['a'], ...serdes })
    .addSource('s2', { topics: ['b'], ...serdes })
    .addProcessor('p1', nothing, ['s1'])
    .addProcessor('p2', nothing, ['s2'])
  assert.equal(apart.subTopologies().length, 2)
  apart.addStateStore(counts, ['p1', 'p2'])
  assert.equal(apart.subTopologies().length, 1)
  assert.deepEqual(
    apart.subTopologies()[0]!.processors.map((p) => p.name),
    ['p1', 'p2'],
  )
})

test('every mistake is named', () => {
  const base = () => new Topology('t').addSource('s', { topics: ['a'], ...serdes }).addProcessor('p', nothing, ['s'])
  const sink = { topic: 'out', partitioner: byKey, ...serdes }
  const faults: [(t: Topology) => unknown, RegExp][] = [
    [(t) => t.addProcessor('p', nothing, ['s']), /two nodes of topology "t" have the name "p"/],
    [(t) => t.addProcessor('q', nothing, ['x']), /processor "q": parent "x" is unknown/],
    [(t) => t.addProcessor('q', nothing, ['q']), /processor "q": parent "q" is unknown/],
    [(t) => t.addProcessor('q', nothing, []), /processor "q" has no parents/],
    [(t) => t.addSink('k', sink, []), /sink "k" has no parents/],
    [(t) => t.addSink('k', sink, ['p', 'p']), /sink "k" names a parent twice/],
    [(t) => t.addSink('k', sink, ['p']).addProcessor('q', nothing, ['k']), /parent "k" is a sink/],
    [(t) => t.addSource('z', { topics: [], ...serdes }), /source "z" has no topics/],
    [(t) => t.addSource('z', { topics: ['a'], ...serdes }), /topic "a" is read by source "s" already/],
    [(t) => t.addSource('', { topics: ['b'], ...serdes }), /a node has the name ""/],
    [(t) => t.addStateStore(counts, []), /state store "counts" is connected to no processor/],
    [(t) => t.addStateStore(counts, ['nobody']), /processor "nobody" is unknown/],
    [(t) => t.addStateStore(counts, ['s']), /"s" is a source, not a processor/],
    [(t) => t.addStateStore(counts, ['p']).addStateStore(counts, ['p']), /"counts" is added twice/],
  ]
  for (const [make, message] of faults) {
    assert.throws(() => make(base()), { name: 'TopologyError', code: 'topology', message })
  }
  assert.throws(() => new Topology('empty').describe(), /has no nodes/)
})
