import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isPublicAddress } from '../../../connectors/http/addresses.ts'

const notPublic = [
  '0.0.0.0',
  '0.1.2.3',
  '10.0.0.1',
  '100.64.0.1',
  '100.127.255.255',
  '127.0.0.1',
  '127.255.255.255',
  '169.254.169.254',
  '172.16.0.1',
  '172.31.255.255',
  '192.0.0.1',
  '192.0.2.1',
  '192.88.99.1',
  '192.168.255.255',
  '198.18.0.1',
  '198.19.255.255',
  '198.51.100.7',
  '203.0.113.7',
  '224.0.0.1',
  '239.255.255.255',
  '240.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  '::10.0.0.1',
  '::ffff:10.0.0.1',
  '::ffff:7f00:1',
  '::ffff:8.8.8.8',
  '64:ff9b::808:808',
  '64:ff9b:1::1',
  '100::1',
  '2001::1',
  '2001:2::1',
  '2001:20::1',
  '2001:db8::1',
  '2002:a00:1::1',
  '3fff::1',
  '5f00::1',
  'fc00::1',
  'fd12:3456::1',
  'fe80::1',
  'fec0::1',
  'ff02::1',
  // What is no plain address.
  'localhost',
  '[2606:4700::1111]',
  '2606:4700::1111%eth0',
  '8.8.8',
  '0x08080808',
  '010.8.8.8',
  '134744072',
  ' 8.8.8.8',
  '',
]

test('X1: special-purpose addresses are not public', () => {
  for (const address of notPublic) assert.equal(isPublicAddress(address), false, address)
})

test('X1: addresses just outside the special ranges are public', () => {
  const addresses = ['8.8.8.8', '1.1.1.1', '9.255.255.255', '11.0.0.0', '100.63.255.255', '100.128.0.0']
  addresses.push('172.15.255.255', '172.32.0.0', '192.167.0.1', '198.17.0.1', '198.20.0.1', '223.255.255.255')
  addresses.push('2606:4700:4700::1111', '2a00:1450:4001::200e', '2001:4860:4860::8888', '2003::1')
  for (const address of addresses) assert.equal(isPublicAddress(address), true, address)
})

test('X1: a private IPv4 is refused in every IPv6 clothing', () => {
  const octet = fc.integer({ min: 0, max: 255 })
  fc.assert(
    fc.property(octet, octet, octet, (a, b, c) => {
      const hex = (high: number, low: number): string => ((high << 8) | low).toString(16)
      const groups = `${hex(10, a)}:${hex(b, c)}`
      for (const address of [`::ffff:${groups}`, `64:ff9b::${groups}`, `::${groups}`, `2002:${groups}::1`]) {
        assert.equal(isPublicAddress(address), false, address)
      }
    }),
  )
})
