import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRefusals } from '../../../processors/canonicalize/refusals.ts'
import { explainScope, type Rules, scopeOf, wideningOf } from '../../../processors/canonicalize/scope.ts'
import type { Control } from '../../../schemas/types.ts'

function rules(mode: Control['mode'] | null, ...hosts: string[]): Rules {
  const rule = { host: null, site: null, ports: [], why: 'a test', at: 0 }
  const list: (readonly [string, Control])[] = hosts.map((host) => [
    `scope-host:${host}`,
    { ...rule, kind: 'scope-host', mode: 'host', host, ports: host === 'ported.example' ? [8080] : [] },
  ])
  return mode === null ? list : [...list, ['scope', { ...rule, kind: 'scope', mode }]]
}

test('explainScope names the rule, or what is missing', () => {
  const listed = rules('domain', 'x.example', 'www.a.example')
  assert.deepEqual(explainScope(listed, 'http://b.a.example/'), {
    admitted: true,
    code: 'admitted',
    rule: 'scope-host:www.a.example',
    message: 'scope is domain: scope-host:www.a.example (a test)',
  })
  assert.equal(explainScope(listed, 'http://c.example/').message, 'scope is domain: no listed host is of c.example')
  assert.equal(explainScope(rules('host', 'www.a.example'), 'http://a.example/').code, 'out-of-scope')
  assert.equal(explainScope(rules(null, 'a.example'), 'http://a.example/').message, 'the crawl has no scope yet')
  assert.equal(explainScope(rules('any'), 'http://a.example:81/').message, 'port 81 is not among 80, 443')
  assert.equal(explainScope(rules('any', 'ported.example'), 'http://a.example:8080/').rule, 'scope')
  assert.equal(explainScope(rules('any'), 'ftp://a.example/').code, 'scheme')
})

test('a widening is what the former scope refused', () => {
  const from = (before: Rules, after: Rules) => wideningOf(scopeOf(before), scopeOf(after))
  const none = { all: false, hosts: [], sites: [], ports: [] }
  assert.deepEqual(from(rules('host', 'a.example'), rules('host', 'a.example')), none)
  assert.deepEqual(from(rules('any', 'a.example'), rules('host', 'a.example')), none)
  assert.deepEqual(from(rules('any'), rules('any', 'a.example')), none)
  assert.deepEqual(from(rules(null), rules(null, 'a.example')), none)
  assert.deepEqual(from(rules('host'), rules('host', 'a.example')), { ...none, hosts: ['a.example'] })
  assert.deepEqual(from(rules('domain'), rules('domain', 'www.a.example')), { ...none, sites: ['a.example'] })
  assert.deepEqual(from(rules('any'), rules('any', 'ported.example')), { ...none, ports: [8080] })
  assert.equal(from(rules('host'), rules('domain')).all, true)
  assert.equal(from(rules(null), rules('host')).all, true)
})

test('refusals past their bound may hold anything', () => {
  const refusals = createRefusals(2)
  const widening = { all: false, hosts: ['z.example'], sites: [], ports: [] }
  refusals.add('a.example', 'a.example', 80)
  refusals.add('b.example', 'b.example', 80)
  refusals.add('b.example', 'b.example', 80)
  assert.equal(refusals.mayHold(widening), false)
  assert.equal(refusals.mayHold({ ...widening, hosts: ['b.example'] }), true)
  assert.equal(refusals.mayHold({ ...widening, hosts: [], sites: ['a.example'] }), true)
  refusals.add('c.example', 'c.example', 80)
  assert.equal(refusals.mayHold(widening), true)
  assert.equal(refusals.mayHold({ ...widening, hosts: [] }), false)
  refusals.reset(true)
  assert.equal(refusals.mayHold(widening), false)
})
