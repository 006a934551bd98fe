import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRecentCache } from '../../processors/cache.ts'
import { hostOf, siteOf, siteOfKey } from '../../processors/site.ts'

test('a site is the registrable domain, private suffixes included', () => {
  assert.equal(siteOf('www.example.co.uk'), 'example.co.uk')
  assert.equal(siteOf('a.b.github.io'), 'b.github.io')
  assert.equal(siteOf('a_b.example.com'), 'example.com')
  assert.equal(siteOf('shop.name.localhost'), 'name.localhost')
  assert.equal(siteOf('xn--bcher-kva.ch'), 'xn--bcher-kva.ch')
  // The same answer from the memory.
  assert.equal(siteOf('a.b.github.io'), 'b.github.io')
})

test('addresses, public suffixes and bare names are their own site', () => {
  for (const host of ['203.0.113.7', '[2001:db8::1]', 'github.io', 'co.uk', 'localhost'])
    assert.equal(siteOf(host), host)
})

test('the host of a URL', () => {
  assert.equal(hostOf('https://user@Example.org:8443/x'), 'example.org')
  assert.equal(hostOf('http://[2001:DB8::1]/'), '[2001:db8::1]')
  assert.throws(() => hostOf('seed:1/'.slice(0, 3)), TypeError)
})

test('keys of topics lead to their site', () => {
  const site = 'example.org'
  for (const key of [
    'https://www.example.org:8443/x',
    'robots:https://www.example.org/robots.txt',
    'dns:www.example.org',
    'visit:www.example.org',
    'www.example.org',
  ]) {
    assert.equal(siteOfKey(key), site, key)
  }
  for (const key of ['seed:1', 'api:7', 'sitemap:https://example.org/s.xml', 'robots:x', 'http://', 'localhost', '']) {
    assert.equal(siteOfKey(key), key)
  }
  assert.equal(siteOfKey('dns:[2001:db8::1]'), '[2001:db8::1]')
})

test('the recent cache is bounded and keeps what is used', () => {
  const cache = createRecentCache<number>(4)
  cache.set('kept', 0)
  for (let i = 0; i < 100; i++) {
    cache.set(`k${i}`, i)
    assert.equal(cache.get('kept'), 0)
  }
  assert.equal(cache.get('k99'), 99)
  const held = Array.from({ length: 100 }, (_, i) => cache.get(`k${i}`)).filter((value) => value !== undefined)
  assert.ok(held.length <= 4, `${held.length} entries`)
  cache.clear()
  assert.equal(cache.get('kept'), undefined)
})
