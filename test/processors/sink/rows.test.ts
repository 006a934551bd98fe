import assert from 'node:assert/strict'
import { test } from 'node:test'
import { base32Of, hexOf, uint64Of } from '../../../processors/sink/columns.ts'
import { decisionsRows } from '../../../processors/sink/decisions.ts'
import { fetchesRow } from '../../../processors/sink/fetches.ts'
import { hostsRow } from '../../../processors/sink/hosts.ts'
import { pageStatesRow } from '../../../processors/sink/page-states.ts'
import { parsesRow } from '../../../processors/sink/parses.ts'
import { sinkTables } from '../../../processors/sink/sink.ts'
import { stringSerde, topicSerde } from '../../../schemas/codec.ts'
import { hash128 } from '../../../schemas/hash.ts'
import { fetched, pageState, parsed } from './records.ts'

const key = 'https://www.shop.co.uk/a?b=1'

test('bytes become text exactly: hexadecimal, UInt64, base32 by RFC 4648', () => {
  assert.equal(hexOf(Uint8Array.of(0, 255, 16)), '00ff10')
  assert.equal(hexOf(null), '')
  assert.equal(uint64Of(Uint8Array.of(255, 255, 255, 255, 255, 255, 255, 254)), '18446744073709551614')
  assert.equal(uint64Of(null), '0')
  // Test vectors of RFC 4648, section 10, without padding.
  for (const [text, wanted] of [
    ['', ''],
    ['f', 'MY'],
    ['fo', 'MZXQ'],
    ['foo', 'MZXW6'],
    ['foob', 'MZXW6YQ'],
    ['fooba', 'MZXW6YTB'],
    ['foobar', 'MZXW6YTBOI'],
  ] as const) {
    assert.equal(base32Of(Buffer.from(text)), wanted)
  }
  // SHA-1 of nothing, as WARC files have it.
  assert.equal(
    base32Of(Buffer.from('da39a3ee5e6b4b0d3255bfef95601890afd80709', 'hex')),
    '3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ',
  )
})

test('fetches: a page that was answered', () => {
  const row = fetchesRow(
    key,
    fetched({
      url: 'https://www.shop.co.uk/a?b=1&utm_source=x',
      startedAt: 1_767_323_045_678,
      endedAt: 1_767_323_045_900,
      status: 200,
      contentType: 'Text/HTML; charset=x',
      payloadDigest: Buffer.from('da39a3ee5e6b4b0d3255bfef95601890afd80709', 'hex'),
      archive: { file: 'weir-1.warc.gz', offset: 12, length: 34 },
      parse: {
        contentHash: Buffer.alloc(16, 1),
        simhash: Buffer.alloc(8, 255),
        tokenCount: 7,
        noindex: false,
        nofollow: false,
        canonicalUrl: null,
        linkCount: 3,
      },
    }),
  )
  assert.equal(row.url, 'https://www.shop.co.uk/a?b=1&utm_source=x')
  assert.equal(row.url_hash_hex, hash128(key).toString('hex'))
  assert.equal(row.fetch_time, '2026-01-02T03:04:05.678Z')
  assert.equal(row.started_at, '2026-01-02T03:04:05.678Z')
  assert.equal(row.ended_at, '2026-01-02T03:04:05.900Z')
  assert.equal(row.fetch_status, 200)
  assert.equal(row.content_mime_type, 'text/html')
  assert.equal(row.content_digest, '3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ')
  assert.equal(row.content_truncated, '')
  assert.deepEqual([row.warc_filename, row.warc_record_offset, row.warc_record_length], ['weir-1.warc.gz', 12, 34])
  assert.deepEqual([row.content_hash_hex, row.simhash], ['01'.repeat(16), '18446744073709551615'])
  assert.deepEqual([row.token_count, row.link_count], [7, 3])
})

test('fetches: where no server was asked there is no start, and the time is that of the outcome', () => {
  const row = fetchesRow(
    'dns:www.shop.co.uk',
    fetched({ outcomeKind: 'dns', startedAt: 0, endedAt: 1_767_323_045_900, status: 0, error: 'nxdomain' }),
  )
  assert.equal(row.started_at, null)
  assert.equal(row.fetch_time, '2026-01-02T03:04:05.900Z')
  assert.equal(row.url_hash_hex, '')
  assert.equal(row.error, 'nxdomain')
  assert.deepEqual([row.warc_filename, row.content_digest, row.simhash], ['', '', '0'])
})

test('page_states and parses: named by the key, with its host and registrable domain', () => {
  const state = pageStatesRow(key, pageState({ sequence: 3, state: 'known', reason: 'ok', next: 1_767_323_045_678 }))
  assert.deepEqual(
    [state.url_hash_hex, state.url, state.host, state.site],
    [hash128(key).toString('hex'), key, 'www.shop.co.uk', 'shop.co.uk'],
  )
  assert.deepEqual([state.sequence, state.state, state.reason], [3, 'known', 'ok'])
  assert.deepEqual([state.next_crawl_at, state.last_crawled_at], ['2026-01-02T03:04:05.678Z', null])
  assert.equal(state.content_hash_hex, '')

  const parse = parsesRow(key, parsed({ title: 'T', extracted: { price: ['1', '2'] } }))
  assert.deepEqual([parse.host, parse.site, parse.title, parse.language], ['www.shop.co.uk', 'shop.co.uk', 'T', ''])
  assert.deepEqual(parse.extracted, { price: ['1', '2'] })
})

test('decisions: one row a reason; a source that is no page has no host', () => {
  const rows = decisionsRows('seed:1', {
    processor: 'canonicalize',
    fetchId: null,
    total: 5,
    reasons: [
      { code: 'out-of-scope', count: 3, examples: ['http://x/'] },
      { code: 'scheme', count: 2, examples: [] },
    ],
    evidence: null,
    at: 1_767_323_045_678,
  })
  assert.deepEqual(
    rows.map((r) => [r.code, r.count, r.url, r.host, r.site, r.at]),
    [
      ['out-of-scope', 3, 'seed:1', '', 'seed:1', '2026-01-02T03:04:05.678Z'],
      ['scheme', 2, 'seed:1', '', 'seed:1', '2026-01-02T03:04:05.678Z'],
    ],
  )
})

test('hosts: origins in columns, the unreachable ones by themselves', () => {
  const origin = { httpStatus: 0, fetchedAt: 0, expiresAt: 0, crawlDelayMs: null, rules: [] }
  const row = hostsRow(
    'www.shop.co.uk',
    {
      site: 'shop.co.uk',
      address: null,
      gate: null,
      delayMs: 1000,
      delayReason: 'minimum',
      backOffUntil: null,
      backOffReason: null,
      origins: [
        { ...origin, origin: 'https://www.shop.co.uk', robotsVersion: 'unreachable', verdict: 'disallow-all' },
        { ...origin, origin: 'http://www.shop.co.uk', robotsVersion: 'none', verdict: 'allow-all' },
      ],
    },
    42,
    1_767_323_045_678,
  )
  assert.deepEqual([row.version, row.back_off_until, row.back_off_reason], [42, null, ''])
  assert.deepEqual(row.robots_verdicts, ['disallow-all', 'allow-all'])
  assert.deepEqual(row.unreachable_origins, ['https://www.shop.co.uk'])
})

test('records are read by their topic; a tombstone has no rows; what cannot be read throws', () => {
  const record = { offset: 9, timestampMs: 0, key: Buffer.from(stringSerde.serialize(key)) }
  const value = topicSerde<object>('page-states').serialize(pageState({ sequence: 8 }))
  assert.equal(sinkTables['page-states'].rows({ ...record, value })[0]!.sequence, 8)
  assert.deepEqual(sinkTables['page-states'].rows({ ...record, value: null }), [])
  assert.throws(() => sinkTables['page-states'].rows({ ...record, value: Buffer.from('nothing') }))
  assert.throws(() => sinkTables['page-states'].rows({ ...record, key: Buffer.from('no url'), value }))
})
