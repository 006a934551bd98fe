import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import type { Archive, ArchiveExchange } from '../../connectors/archive/types.ts'

/** What every Archive adapter must do. */
export interface ArchiveSuite {
  readonly name: string
  open(): { archive: Archive; dispose(): void }
}

export function exchangeOf(body: Buffer | string, more: Partial<ArchiveExchange> = {}): ArchiveExchange {
  const rawBody = Buffer.from(body)
  return {
    url: 'http://shop.example/a?b=1',
    address: '203.0.113.7',
    startedAtMs: Date.UTC(2026, 0, 2, 3, 4, 5, 678),
    requestHead: Buffer.from('GET /a?b=1 HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: weir\r\n\r\n'),
    responseHead: Buffer.from(
      `HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: ${rawBody.length}\r\nX-Two: 1\r\nX-Two: 2\r\n\r\n`,
    ),
    rawBody,
    truncated: null,
    payloadDigest: createHash('sha1').update(rawBody).digest(),
    revisit: null,
    ...more,
  }
}

export function archiveSuite(suite: ArchiveSuite): void {
  const run = (what: string, body: (archive: Archive) => Promise<void>): void => {
    test(`${suite.name}: ${what}`, async () => {
      const { archive, dispose } = suite.open()
      try {
        await body(archive)
      } finally {
        await archive.close()
        dispose()
      }
    })
  }

  run('a response is read back as it was', async (archive) => {
    const ref = archive.append(exchangeOf('<p>hello</p>'))
    await archive.sync()
    const record = await archive.read(ref)
    assert.equal(record.url, 'http://shop.example/a?b=1')
    assert.equal(record.dateMs, Date.UTC(2026, 0, 2, 3, 4, 5, 678))
    assert.equal(record.type, 'response')
    assert.equal(record.status, 200)
    assert.equal(record.rawBody.toString(), '<p>hello</p>')
    assert.deepEqual(record.headers, [
      ['Content-Type', 'text/html'],
      ['X-Two', '1'],
      ['X-Two', '2'],
      ['Content-Length', '12'],
    ])
  })

  run('a record can be read before a sync, and every pointer has its own content', async (archive) => {
    const refs = Array.from({ length: 50 }, (_, i) =>
      archive.append(
        exchangeOf(`body ${i} `.repeat(i * 20), {
          url: `http://shop.example/${i}`,
        }),
      ),
    )
    for (const [i, ref] of refs.entries()) {
      const record = await archive.read(ref)
      assert.equal(record.url, `http://shop.example/${i}`)
      assert.equal(record.rawBody.toString(), `body ${i} `.repeat(i * 20))
    }
  })

  run('a revisit keeps the head and leaves the body out', async (archive) => {
    const same = archive.append(
      exchangeOf('same as ever', {
        revisit: {
          profile: 'identical-payload-digest',
          refersToUrl: 'http://shop.example/a',
          refersToDateMs: 1e12,
        },
      }),
    )
    const notModified = archive.append(
      exchangeOf('', {
        responseHead: Buffer.from('HTTP/1.1 304 Not Modified\r\nETag: "x"\r\nContent-Length: 99\r\n\r\n'),
        revisit: {
          profile: 'server-not-modified',
          refersToUrl: 'http://shop.example/a',
          refersToDateMs: 1e12,
        },
      }),
    )
    const first = await archive.read(same)
    assert.deepEqual([first.type, first.status, first.rawBody.length], ['revisit', 200, 0])
    const second = await archive.read(notModified)
    assert.deepEqual([second.type, second.status, second.rawBody.length], ['revisit', 304, 0])
    assert.deepEqual(second.headers, [
      ['ETag', '"x"'],
      ['Content-Length', '99'],
    ])
  })

  run('W1: the head fits the body once the transfer coding is undone; the content coding stays', async (archive) => {
    const coded = gzipSync('<p>hello</p>')
    const responseHead = Buffer.from(
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip,\r\n chunked\r\ncontent-length: 5\r\nContent-Encoding: gzip\r\n\r\n',
    )
    const record = await archive.read(archive.append(exchangeOf(coded, { responseHead })))
    assert.equal(Buffer.compare(record.rawBody, coded), 0)
    assert.deepEqual(record.headers, [
      ['Content-Encoding', 'gzip'],
      ['Content-Length', String(coded.length)],
    ])
  })

  run('W3: a URL with spaces, line ends or other odd characters breaks no header', async (archive) => {
    const url = 'http://shop.example/a b\r\nWARC-Type: evil/ü?<q>="\u0000\ud800'
    const record = await archive.read(archive.append(exchangeOf('x', { url })))
    assert.equal(record.type, 'response')
    assert.equal(record.url, 'http://shop.example/a%20b%0D%0AWARC-Type:%20evil/%C3%BC?<q>="%00%EF%BF%BD')
    assert.equal(record.rawBody.toString(), 'x')
  })

  run('odd response heads are kept readable', async (archive) => {
    const heads = ['HTTP/2 200\r\nserver: x\r\n\r\n', 'HTTP/1.0 200 OK\nServer: x\n\n', 'HTTP/1.1 200 \r\nServer: x']
    for (const head of heads) {
      const record = await archive.read(archive.append(exchangeOf('body', { responseHead: Buffer.from(head) })))
      assert.equal(record.status, 200, head)
      assert.equal(record.rawBody.toString(), 'body', head)
      assert.equal(record.headers[0]![1], 'x', head)
    }
  })

  run('a pointer that is not of one whole record is refused', async (archive) => {
    const ref = archive.append(exchangeOf('one'))
    archive.append(exchangeOf('two'))
    for (const wrong of [
      { ...ref, offset: ref.offset + 1 },
      { ...ref, length: ref.length + 1 },
      { ...ref, length: ref.length - 1 },
      { ...ref, offset: ref.offset + ref.length },
      { ...ref, offset: 1e9 },
      { ...ref, offset: -1 },
      { ...ref, length: 0 },
      { ...ref, length: 2 ** 40 },
    ]) {
      await assert.rejects(archive.read(wrong), (error: Error & { code?: string }) =>
        ['bad-pointer', 'too-large'].includes(error.code!),
      )
    }
    await assert.rejects(archive.read({ ...ref, file: 'other.warc.gz' }), {
      code: 'not-found',
    })
  })

  run('closed means closed', async (archive) => {
    const ref = archive.append(exchangeOf('one'))
    await archive.close()
    assert.throws(() => archive.append(exchangeOf('two')), { code: 'closed' })
    assert.equal((await archive.read(ref)).rawBody.toString(), 'one')
  })

  run('any body comes back', async (archive) => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 3_000 }), fc.boolean(), async (bytes, coded) => {
        const responseHead = Buffer.from(`HTTP/1.1 200 OK\r\n${coded ? 'Content-Encoding: br\r\n' : ''}\r\n`)
        const record = await archive.read(archive.append(exchangeOf(Buffer.from(bytes), { responseHead })))
        assert.equal(Buffer.compare(record.rawBody, Buffer.from(bytes)), 0)
      }),
      { numRuns: 100 },
    )
  })
}
