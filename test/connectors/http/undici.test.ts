import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import zlib from 'node:zlib'
import { createSystemClock } from '../../../connectors/clock/system.ts'
import { createUndiciClient } from '../../../connectors/http/undici.ts'
import { asFailure, asResponse, httpClientSuite, request } from '../../suites/http.ts'
import { ask, deafPort, exchange, fastClock, httpServer, rawServer, type TestServer } from './servers.ts'

const clock = createSystemClock()
const newClient = () => createUndiciClient({ clock, allowPrivate: true })

httpClientSuite('undici', async () => {
  const server = await httpServer((req, res) => {
    const html = { 'content-type': 'text/html; charset=utf-8' }
    if (req.url === '/hello') res.writeHead(200, html).end('hello')
    else if (req.url === '/moved') res.writeHead(301, { location: '/hello' }).end()
    else if (req.url === '/image') res.writeHead(200, { 'content-type': 'image/png' }).end(Buffer.alloc(100))
    else res.writeHead(404, html).end('nothing')
  })
  const client = newClient()
  return {
    origin: server.origin,
    address: '127.0.0.1',
    deaf: {
      origin: `http://deaf.localhost:${await deafPort()}`,
      address: '127.0.0.1',
    },
    client,
    run: (asked) => exchange(client, asked),
    async close() {
      await client.close()
      await server.close()
    },
  }
})

/** Runs `body` against a server that is gone afterwards. */
async function against(server: TestServer, body: () => Promise<void>): Promise<void> {
  try {
    await body()
  } finally {
    await server.close()
  }
}

describe('undici: the request', () => {
  test('the head is byte for byte what a server gets, on a new and on a kept connection', async () => {
    const heads: string[] = []
    const server = await rawServer((socket, data) => {
      heads.push(data)
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
    })
    await against(server, async () => {
      const client = newClient()
      for (const path of ['/a%20b?q=1&q=%C3%BC', "/x|y'z?", '/']) {
        const headers = [
          ['user-agent', 'weir/0.1 (+https://example.org/)'],
          ['if-none-match', 'W/"a"'],
        ] as const
        const response = asResponse(await exchange(client, request(server.origin + path, '127.0.0.1', { headers })))
        assert.equal(response.requestHead.toString('latin1'), heads.at(-1))
      }
      const headers = [['connection', 'close'] as const]
      const closing = asResponse(await exchange(client, request(server.origin, '127.0.0.1', { headers })))
      assert.equal(closing.requestHead.toString('latin1'), heads.at(-1))
      assert.equal(heads.length, 4)
      assert.equal(server.connections(), 1)
      await client.close()
    })
  })

  test('a redirect is not followed', async () => {
    const paths: string[] = []
    const server = await httpServer((req, res) => {
      paths.push(req.url!)
      res.writeHead(302, { location: '/next' }).end()
    })
    await against(server, async () => {
      assert.equal(asResponse(await ask(server, '/first')).status, 302)
      assert.deepEqual(paths, ['/first'])
    })
  })

  test('X1: the address is refused before anything is written, the name does not matter', async () => {
    const server = await httpServer((_req, res) => res.end('secret'))
    await against(server, async () => {
      const client = createUndiciClient({ clock })
      for (const address of ['127.0.0.1', '::ffff:127.0.0.1', '10.0.0.1', 'localhost']) {
        const failed = asFailure(await exchange(client, request(server.origin, address)))
        assert.equal(failed.error, 'address-refused')
        assert.equal(failed.written, false)
      }
      assert.equal(server.connections(), 0)
      await client.close()
    })
  })

  test('X1: it connects to the address given, not to what the name says', async () => {
    const server = await httpServer((req, res) => res.end(req.headers.host))
    await against(server, async () => {
      const client = newClient()
      const asked = request(`http://example.invalid:${server.port}/`, '127.0.0.1')
      assert.equal(asResponse(await exchange(client, asked)).body.toString(), `example.invalid:${server.port}`)
      await client.close()
    })
  })

  test('mayStart is asked after the connection stands, in the turn that writes', async () => {
    const server = await httpServer((_req, res) => res.end('ok'))
    await against(server, async () => {
      const order: string[] = []
      const client = newClient()
      const asked = request(server.origin, '127.0.0.1', {
        mayStart() {
          order.push(`connections ${server.connections()}`)
          return true
        },
      })
      const outcome = exchange(client, asked)
      order.push('asked')
      asResponse(await outcome)
      // The server and this test share a thread: it has seen the connection only after a turn of its own.
      assert.equal(order[0], 'asked')
      assert.equal(order.length, 2)
      await client.close()
    })
  })

  test('a refusal by mayStart keeps the connection', async () => {
    let requests = 0
    const server = await httpServer((_req, res) => {
      requests++
      res.end('ok')
    })
    await against(server, async () => {
      const client = newClient()
      const asked = request(server.origin, '127.0.0.1')
      const refused = { ...asked, mayStart: () => false }
      assert.equal((await exchange(client, refused)).kind, 'not-started')
      assert.equal((await exchange(client, refused)).kind, 'not-started')
      asResponse(await exchange(client, asked))
      assert.equal((await exchange(client, refused)).kind, 'not-started')
      asResponse(await exchange(client, asked))
      assert.deepEqual([server.connections(), requests], [1, 2])
      await client.close()
    })
  })
})

describe('undici: connections', () => {
  test('Q12: a kept connection is used again', async () => {
    const server = await httpServer((_req, res) => res.end('ok'))
    await against(server, async () => {
      const client = newClient()
      for (let i = 0; i < 3; i++) asResponse(await exchange(client, request(server.origin, '127.0.0.1')))
      assert.equal(server.connections(), 1)
      await client.close()
    })
  })

  test('Q12: a connection that the server closed while idle is replaced before anything is written', async () => {
    const server = await rawServer((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
      setTimeout(() => socket.end(), 5)
    })
    await against(server, async () => {
      const client = newClient()
      for (let i = 0; i < 3; i++) {
        asResponse(await exchange(client, request(server.origin, '127.0.0.1')))
        await sleep(15)
      }
      assert.equal(server.connections(), 3)
      await client.close()
    })
  })

  test('Q12: after a byte was written nothing is sent again', async () => {
    const server = await rawServer((socket, _data, nth) => {
      if (nth === 0) socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
      else socket.resetAndDestroy()
    })
    await against(server, async () => {
      const client = newClient()
      asResponse(await exchange(client, request(server.origin, '127.0.0.1')))
      const failed = asFailure(await exchange(client, request(server.origin, '127.0.0.1')))
      assert.equal(failed.error, 'reset')
      assert.equal(failed.written, true)
      assert.ok(failed.times.startedAtMs > 0)
      assert.equal(server.connections(), 1)
      await client.close()
    })
  })

  test('Q12: origins are bounded, the least recently used goes first', async () => {
    const server = await httpServer((_req, res) => res.end('ok'))
    await against(server, async () => {
      const client = createUndiciClient({
        clock,
        allowPrivate: true,
        maxOrigins: 2,
      })
      const visit = (name: string) =>
        exchange(client, request(`http://${name}.localhost:${server.port}/`, '127.0.0.1')).then(asResponse)
      for (const name of ['a', 'b', 'a', 'c', 'a', 'b']) await visit(name)
      assert.equal(server.connections(), 4)
      await client.close()
    })
  })

  test('cancel ends the exchange at once', async () => {
    const server = await httpServer(() => {})
    await against(server, async () => {
      const client = newClient()
      const failed = await new Promise((resolve) => {
        const running = client.request(request(server.origin, '127.0.0.1'), resolve)
        setTimeout(() => running.cancel(), 10)
      })
      assert.equal((failed as { error: string }).error, 'reset')
      await client.close()
    })
  })

  test('close ends what is open', async () => {
    const server = await httpServer(() => {})
    await against(server, async () => {
      const client = newClient()
      const outcome = exchange(client, request(server.origin, '127.0.0.1'))
      await sleep(10)
      await client.close()
      assert.equal(asFailure(await outcome).error, 'reset')
    })
  })
})

describe('undici: bodies', () => {
  const codings = {
    gzip: (bytes: Buffer) => zlib.gzipSync(bytes),
    deflate: (bytes: Buffer) => zlib.deflateSync(bytes),
    br: (bytes: Buffer) =>
      zlib.brotliCompressSync(bytes, {
        params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 4 },
      }),
    zstd: (bytes: Buffer) => zlib.zstdCompressSync(bytes),
  }
  const coded = (coding: string, bytes: Buffer) =>
    httpServer((_req, res) => {
      res.writeHead(200, {
        'content-type': 'text/html',
        'content-encoding': coding,
      })
      res.end(bytes)
    })

  for (const [coding, encode] of Object.entries(codings)) {
    test(`${coding} is undone, small and large, and kept as received`, async () => {
      for (const size of [0, 10, 3_000_000]) {
        const plain = Buffer.from(Array.from({ length: size }, (_, i) => (i * i * 31 + (i >> 3)) & 0xff))
        const bytes = encode(plain)
        const server = await coded(coding, bytes)
        await against(server, async () => {
          const response = asResponse(await ask(server, '/', { maxBodyBytes: 4_000_000 }))
          assert.ok(response.rawBody.equals(bytes))
          assert.ok(response.body.equals(plain))
          assert.deepEqual([response.truncated, response.bodyError], ['none', null])
        })
      }
    })

    test(`B1: a ${coding} bomb is cut at the cap`, async () => {
      const bomb = encode(Buffer.alloc(64 * 1024 * 1024, 'a'))
      const server = await coded(coding, bomb)
      await against(server, async () => {
        const response = asResponse(await ask(server, '/', { maxBodyBytes: 100_000 }))
        assert.equal(response.truncated, 'length')
        assert.equal(response.body.length, 100_000)
        assert.ok(response.body.every((byte) => byte === 97))
      })
    })
  }

  test('B1: an endless bomb is cut while it is being sent', async () => {
    const block = zlib.gzipSync(Buffer.alloc(8 * 1024 * 1024))
    let open = true
    const server = await httpServer((_req, res) => {
      res.writeHead(200, { 'content-encoding': 'gzip' })
      res.on('close', () => {
        open = false
      })
      const send = (): void => {
        if (open) res.write(block, () => setImmediate(send))
      }
      send()
    })
    await against(server, async () => {
      const response = asResponse(await ask(server, '/', { maxBodyBytes: 5_000_000 }))
      assert.equal(response.truncated, 'length')
      assert.equal(response.body.length, 5_000_000)
      await sleep(20)
      assert.equal(open, false)
    })
  })

  test('raw deflate is taken too', async () => {
    const server = await coded('deflate', zlib.deflateRawSync(Buffer.from('raw deflate')))
    await against(server, async () => assert.equal(asResponse(await ask(server, '/')).body.toString(), 'raw deflate'))
  })

  test('two codings are undone in the right order', async () => {
    const server = await coded('br, gzip', zlib.gzipSync(zlib.brotliCompressSync(Buffer.from('twice'))))
    await against(server, async () => assert.equal(asResponse(await ask(server, '/')).body.toString(), 'twice'))
  })

  for (const coding of ['gzip, gzip, gzip', 'compress', 'gzip; q=1']) {
    test(`B1: ${coding} is not undone`, async () => {
      const server = await coded(coding, Buffer.from('opaque'))
      await against(server, async () => {
        const response = asResponse(await ask(server, '/'))
        assert.deepEqual([response.body.length, response.bodyError], [0, 'protocol'])
        assert.equal(response.rawBody.toString(), 'opaque')
      })
    })
  }

  test('a broken coding gives what came before and says so', async () => {
    const bytes = zlib.gzipSync(Buffer.from(Array.from({ length: 400_000 }, (_, i) => (i * i * 7) & 0xff)))
    bytes.fill(0xff, Math.floor(bytes.length / 2))
    const server = await coded('gzip', bytes)
    await against(server, async () => {
      const response = asResponse(await ask(server, '/'))
      assert.equal(response.bodyError, 'protocol')
      assert.ok(response.body.length > 0)
      assert.ok(response.rawBody.equals(bytes))
    })
  })

  test('W1: chunked and gzip: the raw body is the gzip, without its chunks', async () => {
    const gzip = zlib.gzipSync(Buffer.from('de-chunked'))
    const server = await rawServer((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-encoding: gzip\r\n\r\n')
      for (const part of [gzip.subarray(0, 7), gzip.subarray(7)]) {
        socket.write(`${part.length.toString(16)};ext=1\r\n`)
        socket.write(part)
        socket.write('\r\n')
      }
      socket.write('0\r\nx-trailer: 1\r\n\r\n')
    })
    await against(server, async () => {
      const response = asResponse(await ask(server, '/'))
      assert.ok(response.rawBody.equals(gzip))
      assert.equal(response.body.toString(), 'de-chunked')
    })
  })

  test('a body without a length ends with the connection', async () => {
    const server = await rawServer((socket) => socket.end('HTTP/1.0 200 OK\r\n\r\nto the end'))
    await against(server, async () => {
      const response = asResponse(await ask(server, '/'))
      assert.equal(response.body.toString(), 'to the end')
      assert.equal(response.truncated, 'none')
      assert.equal(response.httpVersion, '1.0')
    })
  })

  test('304 has no body and keeps the connection', async () => {
    const server = await httpServer((_req, res) => res.writeHead(304, { etag: '"a"' }).end())
    await against(server, async () => {
      const client = newClient()
      for (let i = 0; i < 2; i++) {
        const asked = request(server.origin, '127.0.0.1', {
          accepts: () => assert.fail('there is no body'),
        })
        const response = asResponse(await exchange(client, asked))
        assert.deepEqual([response.status, response.body.length, response.truncated], [304, 0, 'none'])
      }
      assert.equal(server.connections(), 1)
      await client.close()
    })
  })

  test('a connection cut in the body keeps what came', async () => {
    for (const end of ['end', 'resetAndDestroy'] as const) {
      const server = await rawServer((socket) => {
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nsome')
        setTimeout(() => socket[end](), 10)
      })
      await against(server, async () => {
        const response = asResponse(await ask(server, '/'))
        assert.deepEqual([response.truncated, response.bodyError], ['disconnect', 'reset'])
        assert.equal(response.body.toString(), 'some')
      })
    }
  })

  test('mid-body is hit when part of the body is there', async () => {
    const points: string[] = []
    const server = await httpServer((_req, res) => res.end('body'))
    await against(server, async () => {
      asResponse(await ask(server, '/', {}, { faults: { hit: (point) => points.push(point) } }))
      assert.deepEqual(points, ['mid-body'])
    })
  })
})

describe('undici: deadlines', () => {
  /** A server of which a second lasts ten milliseconds. */
  const quick = { clock: fastClock(100) }
  const drip = (res: ServerResponse, bytes: number): void => {
    const timer = setInterval(() => res.write(Buffer.alloc(bytes)), 5)
    res.on('close', () => clearInterval(timer))
  }

  test('B3: a dripping body is cut by its rate over ten seconds', async () => {
    const server = await httpServer((_req, res) => drip(res.writeHead(200), 1))
    await against(server, async () => {
      const limits = {
        minBytesPerSec: 50,
        totalTimeoutMs: 60_000,
        headersTimeoutMs: 30_000,
      }
      const response = asResponse(await ask(server, '/', limits, quick))
      assert.deepEqual([response.truncated, response.bodyError], ['time', 'body-timeout'])
      assert.ok(response.rawBody.length > 0)
    })
  })

  test('B3: a radio stream is cut by the total deadline', async () => {
    const server = await httpServer((_req, res) => drip(res.writeHead(200), 1000))
    await against(server, async () => {
      const limits = {
        minBytesPerSec: 50,
        totalTimeoutMs: 15_000,
        headersTimeoutMs: 10_000,
      }
      const response = asResponse(await ask(server, '/', limits, quick))
      assert.deepEqual([response.truncated, response.bodyError], ['time', 'total-timeout'])
      const { startedMonotonicMs, endedMonotonicMs } = response.times
      // A timer of the system may fire up to a millisecond early, which is a hundred here.
      assert.ok(endedMonotonicMs - startedMonotonicMs >= 14_800)
    })
  })

  test('slow headers: headers-timeout; a head that drips too', async () => {
    for (const head of ['', 'HTTP/1.1 200 OK\r\nx-a: ']) {
      const server = await rawServer((socket) => {
        const timer = setInterval(() => socket.write(head === '' ? '' : 'x'), 5)
        socket.write(head)
        socket.on('close', () => clearInterval(timer))
      })
      await against(server, async () => {
        const failed = asFailure(await ask(server, '/', { headersTimeoutMs: 5_000, totalTimeoutMs: 60_000 }, quick))
        assert.equal(failed.error, 'headers-timeout')
        assert.equal(failed.written, true)
      })
    }
  })

  test('a TLS handshake that never ends: connect-timeout, nothing written', async () => {
    const server = await rawServer(() => {})
    await against(server, async () => {
      const client = createUndiciClient({
        clock: fastClock(100),
        allowPrivate: true,
      })
      const asked = request(`https://page.localhost:${server.port}/`, '127.0.0.1', { connectTimeoutMs: 3_000 })
      const failed = asFailure(await exchange(client, asked))
      assert.deepEqual([failed.error, failed.written], ['connect-timeout', false])
      await client.close()
    })
  })
})

describe('undici: heads', () => {
  const answers: [string, string][] = [
    ['garbage', 'nonsense\r\n\r\n'],
    ['another protocol', 'SSH-2.0-OpenSSH_9.6\r\n'],
    ['a space before the colon', 'HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok'],
    ['two lengths that differ', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok'],
    ['length and chunks', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 2\r\n\r\nok'],
    ['a bare line feed in a value', 'HTTP/1.1 200 OK\r\nx: a\nb c\r\n\r\n'],
    ['huge headers', `HTTP/1.1 200 OK\r\nx: ${'a'.repeat(100_000)}\r\n\r\n`],
    ['many headers', `HTTP/1.1 200 OK\r\n${'x: y\r\n'.repeat(1_000)}\r\n`],
    ['an upgrade that nobody asked for', 'HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'],
  ]
  for (const [what, answer] of answers) {
    test(`${what}: protocol`, async () => {
      const server = await rawServer((socket) => socket.write(answer))
      await against(server, async () => {
        const failed = asFailure(await ask(server, '/'))
        assert.equal(failed.error, 'protocol', failed.message)
        assert.equal(failed.written, true)
      })
    })
  }

  test('reset before the head', async () => {
    for (const end of ['end', 'resetAndDestroy'] as const) {
      const server = await rawServer((socket) => socket[end]())
      await against(server, async () => assert.equal(asFailure(await ask(server, '/')).error, 'reset'))
    }
  })

  test('1xx is ignored, 100 too, however it is cut', async () => {
    const bytes = Buffer.from(
      'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\nx: y\r\n\r\n' +
        'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok',
    )
    for (const step of [1, 7, 11, 30, bytes.length]) {
      const server = await rawServer(async (socket) => {
        for (let at = 0; at < bytes.length; at += step) {
          socket.write(bytes.subarray(at, at + step))
          if (step < bytes.length) await sleep(0)
        }
      })
      await against(server, async () => {
        const response = asResponse(await ask(server, '/'))
        if (step === 1) assert.equal(response.status, 200)
        assert.equal(response.body.toString(), 'ok')
      })
    }
  })

  test('a second response that nobody asked for is never taken for an answer', async () => {
    const server = await rawServer((socket, _data, nth) => {
      const body = `answer ${nth}`
      const one = (text: string) => `HTTP/1.1 200 OK\r\ncontent-length: ${text.length}\r\n\r\n${text}`
      socket.write(nth === 0 ? one(body) + one('smuggled') : one(body))
    })
    await against(server, async () => {
      const client = newClient()
      const bodies: string[] = []
      for (let i = 0; i < 2; i++) {
        const outcome = await exchange(client, request(server.origin, '127.0.0.1'))
        bodies.push(outcome.kind === 'response' ? outcome.body.toString() : outcome.kind)
        await sleep(5)
      }
      assert.ok(!bodies.includes('smuggled'), String(bodies))
      await client.close()
    })
  })

  test('header bytes come through', async () => {
    const server = await rawServer((socket) =>
      socket.write(
        Buffer.from('HTTP/1.1 200 Tr\xe8s bien\r\nX-A: caf\xe9\r\nX-A: 2\r\ncontent-length: 0\r\n\r\n', 'latin1'),
      ),
    )
    await against(server, async () => {
      const response = asResponse(await ask(server, '/'))
      assert.deepEqual(response.headers.slice(0, 2), [
        ['X-A', 'caf\xe9'],
        ['X-A', '2'],
      ])
    })
  })
})
