import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createSystemClock } from '../../../connectors/clock/system.ts'
import { createVirtualClock } from '../../../connectors/clock/virtual.ts'
import {
  createSystemResolver,
  type DnsAnswer,
  type DnsQueries,
  type SystemResolverOptions,
} from '../../../connectors/dns/system.ts'
import type { DnsResult } from '../../../connectors/dns/types.ts'

type Script = {
  /** Answers or an error code for each family. */
  4?: readonly DnsAnswer[] | string
  6?: readonly DnsAnswer[] | string
  hosts?: readonly string[]
  silent?: boolean
}

function open(scripts: { [host: string]: Script }, options: Partial<SystemResolverOptions> = {}) {
  const clock = createVirtualClock(0)
  const asked: string[] = []
  const queries: DnsQueries = {
    resolve(host, family, done) {
      asked.push(`${host} ${family}`)
      const script = scripts[host] ?? {}
      if (script.silent) return
      const answer = script[family] ?? 'ENOTFOUND'
      clock.setTimer(20, () => {
        if (typeof answer === 'string') done({ code: answer, message: answer }, [])
        else done(null, answer)
      })
    },
    lookup(host, done) {
      asked.push(`${host} hosts`)
      const found = scripts[host]?.hosts
      clock.setTimer(1, () => (found === undefined ? done({ code: 'ENOTFOUND', message: '' }, []) : done(null, found)))
    },
    close() {},
  }
  const resolver = createSystemResolver({ clock, queries, ...options })
  return {
    clock,
    asked,
    resolver,
    resolve(host: string): DnsResult {
      let result: DnsResult | undefined
      let within = true
      resolver.resolve(host, (r) => {
        assert.equal(within, false, 'done was called from within resolve')
        result = r
      })
      within = false
      for (let next = clock.nextTimerMs(); result === undefined && next !== undefined; next = clock.nextTimerMs()) {
        clock.advanceTo(next)
      }
      return result!
    },
  }
}

const a = (address: string, ttl = 300): DnsAnswer => ({ address, ttl })

describe('the system resolver', () => {
  test('A and AAAA together, the shortest time to live holds', () => {
    const dns = open({ 'a.example': { 4: [a('192.0.2.1', 120), a('192.0.2.2', 600)], 6: [a('2001:db8::1', 90)] } })
    assert.deepEqual(dns.resolve('A.Example.'), {
      kind: 'ok',
      addresses: ['192.0.2.1', '192.0.2.2', '2001:db8::1'],
      ttlMs: 90_000,
    })
  })

  test('one family is enough', () => {
    for (const other of ['ENODATA', 'ESERVFAIL', 'ETIMEOUT']) {
      const result = open({ 'a.example': { 4: [a('192.0.2.1')], 6: other } }).resolve('a.example')
      assert.equal(result.kind, 'ok', other)
    }
  })

  test('an answer is kept for its time, within bounds, and its age shows', () => {
    const dns = open({ 'a.example': { 4: [a('192.0.2.1', 100)] }, 'b.example': { 4: [a('192.0.2.2', 0)] } })
    dns.resolve('a.example')
    dns.clock.advanceTo(60_020)
    const kept = dns.resolve('a.example')
    assert.ok(kept.kind === 'ok' && kept.ttlMs === 40_000, JSON.stringify(kept))
    assert.equal(dns.asked.length, 2)
    dns.clock.advanceTo(100_020)
    dns.resolve('a.example')
    assert.equal(dns.asked.length, 4)
    const short = dns.resolve('b.example')
    assert.ok(short.kind === 'ok' && short.ttlMs === 30_000)
  })

  test('equal questions that are open share one query', () => {
    const dns = open({ 'a.example': { 4: [a('192.0.2.1')] } })
    const results: DnsResult[] = []
    for (let i = 0; i < 5; i++) dns.resolver.resolve('a.example', (result) => results.push(result))
    dns.clock.advanceTo(1000)
    assert.equal(results.length, 5)
    assert.deepEqual(dns.asked, ['a.example 4', 'a.example 6'])
  })

  test('failures are told apart, and remembered for different times', () => {
    for (const [code, error, forMs] of [
      ['ENOTFOUND', 'nxdomain', 300_000],
      ['ENODATA', 'nxdomain', 300_000],
      ['ESERVFAIL', 'servfail', 30_000],
      ['EREFUSED', 'servfail', 30_000],
      ['ETIMEOUT', 'timeout', 30_000],
    ] as const) {
      const dns = open({ 'a.example': { 4: code, 6: code } })
      const result = dns.resolve('a.example')
      assert.ok(result.kind === 'error' && result.error === error, code)
      const queries = dns.asked.length
      const at = dns.clock.monotonicMs()
      dns.clock.advanceTo(at + forMs - 100)
      dns.resolve('a.example')
      assert.equal(dns.asked.length, queries, code)
      dns.clock.advanceTo(at + forMs)
      dns.resolve('a.example')
      assert.equal(dns.asked.length, 2 * queries, code)
    }
  })

  test('no proof, no NXDOMAIN: a family that failed leaves it open', () => {
    const result = open({ 'a.example': { 4: 'ETIMEOUT', 6: 'ENODATA' } }).resolve('a.example')
    assert.ok(result.kind === 'error' && result.error === 'timeout')
  })

  test('names of the hosts file are found where DNS does not know them', () => {
    const dns = open({ broker: { hosts: ['10.1.2.3'] } })
    assert.deepEqual(dns.resolve('broker'), { kind: 'ok', addresses: ['10.1.2.3'], ttlMs: 30_000 })
  })

  test('a server that never answers is a timeout', () => {
    const dns = open({ 'a.example': { silent: true } }, { timeoutMs: 1000 })
    const result = dns.resolve('a.example')
    assert.ok(result.kind === 'error' && result.error === 'timeout')
    assert.equal(dns.clock.monotonicMs(), 3000)
  })

  test('localhost and names under it are answered here', () => {
    const dns = open({ localhost: { 4: [a('203.0.113.9')] } })
    for (const host of ['localhost', 'LOCALHOST', 'shop.localhost', 'a.b.localhost.']) {
      const result = dns.resolve(host)
      assert.deepEqual(result.kind === 'ok' && result.addresses, ['127.0.0.1'], host)
    }
    const other = dns.resolve('notlocalhost')
    assert.equal(other.kind, 'error')
  })

  test('addresses are answered as themselves', () => {
    const dns = open({})
    for (const [host, address] of [
      ['192.0.2.7', '192.0.2.7'],
      ['[2001:db8::7]', '2001:db8::7'],
      ['::1', '::1'],
    ] as const) {
      const result = dns.resolve(host)
      assert.deepEqual(result.kind === 'ok' && [result.addresses, result.ttlMs], [[address], 86_400_000])
    }
    assert.deepEqual(dns.asked, [])
  })

  test('the cache is bounded, the least recently used goes first', () => {
    const answer = { 4: [a('192.0.2.1')] }
    const dns = open({ a: answer, b: answer, c: answer }, { maxEntries: 2 })
    for (const host of ['a', 'b', 'a', 'c', 'a']) dns.resolve(host)
    assert.deepEqual(
      dns.asked.filter((q) => q.endsWith(' 4')),
      ['a 4', 'b 4', 'c 4'],
    )
    dns.resolve('b')
    assert.equal(dns.asked.at(-2), 'b 4')
  })

  test('with the system clock and its own queries', async () => {
    const resolver = createSystemResolver({ clock: createSystemClock() })
    const result = await new Promise<DnsResult>((resolve) => resolver.resolve('site.localhost', resolve))
    assert.equal(result.kind, 'ok')
    resolver.close()
  })
})
