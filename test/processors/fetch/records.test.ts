import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { iterateLinks } from '../../../schemas/links.ts'
import { linkFlags } from '../../../schemas/types.ts'
import { StopProcessError } from '../../../topology/streams/errors.ts'
import { answer, entryOf, html, openFetch, sha1, startMs, visitOf } from './harness.ts'

/** One page of one visit. */
function fetchOne(
  ...[script, entry, options]: [Parameters<typeof openFetch>[0], ReturnType<typeof entryOf>?, object?]
) {
  const task = openFetch(script, options)
  task.take(visitOf([entry ?? entryOf('/page')]))
  task.settle()
  return { task, fetched: task.fetched()[0]! }
}

describe('pages', () => {
  test('one completion a request, in order: links, text, decisions, and last the outcome', () => {
    const { task, fetched } = fetchOne(() => html('href=/a href=/b'))
    assert.deepEqual(task.completions, [['discovered-urls', 'parsed', 'fetched']])
    const links = task.of('discovered-urls')[0]!
    assert.equal(links.key, 'http://a.example/page')
    assert.deepEqual([links.value.depth, links.value.linkCount, links.value.sourceKind], [3, 2, 'page'])
    const parsed = task.of('parsed')[0]!
    assert.deepEqual([parsed.value.title, parsed.value.fetchedAt], ['title', startMs])
    assert.equal(fetched.key, 'http://a.example/page')
    assert.deepEqual([fetched.outcomeKind, fetched.status, fetched.error], ['page', 200, 'none'])
    assert.deepEqual([fetched.contentType, fetched.charset], ['text/html', 'utf-8'])
    assert.equal(fetched.fetchId, '0123456789abcdef-7.0.0.0')
    assert.deepEqual([fetched.startedAt, fetched.endedAt], [startMs, startMs + 10])
    assert.deepEqual(fetched.archive, {
      file: 'test.warc.gz',
      offset: 100,
      length: 100,
    })
    assert.ok(fetched.parse !== null && fetched.parse.linkCount === 2)
    assert.ok(sha1('href=/a href=/b').equals(fetched.payloadDigest!))
    for (const { fetchId } of [links.value, parsed.value]) assert.equal(fetchId, fetched.fetchId)
  })

  test('no links, no discovered-urls', () => {
    const { task } = fetchOne(() => html('plain'))
    assert.deepEqual(task.completions, [['parsed', 'fetched']])
  })

  test('what parse throws is recorded, and the outcome too', () => {
    const { task, fetched } = fetchOne(() => html('broken'))
    assert.deepEqual(task.completions, [['decisions', 'fetched']])
    assert.equal(task.of('decisions')[0]!.value.reasons[0]!.code, 'parse-failed')
    assert.equal(task.of('decisions')[0]!.value.evidence, 'cannot parse that')
    assert.deepEqual([fetched.status, fetched.parse], [200, null])
  })

  test('error statuses are archived and not parsed', () => {
    for (const status of [404, 410, 500, 403]) {
      const { task, fetched } = fetchOne(() => html('href=/a', { status }))
      assert.deepEqual(task.completions, [['fetched']])
      assert.equal(fetched.status, status)
      assert.equal(task.archive.exchanges.length, 1)
    }
  })

  test('only text is wanted; robots.txt is read whatever it calls itself', () => {
    const { task } = fetchOne(() => html(''))
    const accepts = task.http.asked[0]!.accepts
    for (const type of ['text/html', 'TEXT/HTML; charset=x', 'application/xhtml+xml', 'text/plain', null, '']) {
      assert.equal(accepts(type), true, String(type))
    }
    for (const type of ['image/png', 'application/octet-stream', 'video/mp4', 'application/pdf']) {
      assert.equal(accepts(type), false, type)
    }
  })

  test('a type that is not wanted is recorded without its body', () => {
    const image = {
      headers: [['content-type', 'image/png']] as [string, string][],
      truncated: 'type' as const,
    }
    const { task, fetched } = fetchOne(() => html('', image))
    assert.deepEqual(
      [fetched.status, fetched.truncated, fetched.parse, fetched.contentType],
      [200, 'type', null, 'image/png'],
    )
    assert.equal(task.archive.exchanges[0]!.truncated, 'unspecified')
  })

  test('a body that was cut is parsed as far as it came; the error keeps its status', () => {
    const { fetched } = fetchOne(() => html('href=/a', { truncated: 'time', bodyError: 'body-timeout' }))
    assert.deepEqual([fetched.status, fetched.error, fetched.truncated], [200, 'body-timeout', 'time'])
    assert.equal(fetched.parse?.linkCount, 1)
  })

  test('the headers name us, ask for gzip first, and carry validators only as they came', () => {
    const entry = entryOf('/p', {
      etag: 'W/"1"',
      lastModified: 'Thu, 01 Jan 2026 00:00:00 GMT',
    })
    const { headers } = fetchOne(() => html(''), entry).task.http.started[0]!
    assert.equal(headers.get('user-agent'), 'weir-test/1 (+https://example.org/)')
    assert.match(headers.get('accept-encoding')!, /^gzip/)
    assert.equal(headers.get('if-none-match'), 'W/"1"')
    assert.equal(headers.get('if-modified-since'), 'Thu, 01 Jan 2026 00:00:00 GMT')
    const hostile = fetchOne(() => html(''), entryOf('/p', { etag: '"a"\r\nx: y' })).task.http.started[0]!
    assert.equal(hostile.headers.has('if-none-match'), false)
  })

  test('304 is a revisit of the version that was known', () => {
    const known = {
      etag: '"1"',
      payloadDigest: sha1('old'),
      lastFetchedAt: startMs - 86_400_000,
    }
    const { task, fetched } = fetchOne(() => answer(304, [['etag', '"1"']]), entryOf('/p', known))
    assert.deepEqual([fetched.status, fetched.revisit, fetched.parse], [304, true, null])
    assert.ok(sha1('old').equals(fetched.payloadDigest!))
    assert.deepEqual(task.archive.exchanges[0]!.revisit, {
      profile: 'server-not-modified',
      refersToUrl: 'http://a.example/p',
      refersToDateMs: startMs - 86_400_000,
    })
  })

  test('the same payload again is a revisit too, and still parsed', () => {
    const known = {
      payloadDigest: sha1('same'),
      lastFetchedAt: startMs - 1000,
    }
    const { task, fetched } = fetchOne(() => html('same'), entryOf('/p', known))
    assert.deepEqual([fetched.revisit, fetched.parse !== null], [true, true])
    assert.equal(task.archive.exchanges[0]!.revisit?.profile, 'identical-payload-digest')
    assert.equal(fetchOne(() => html('other'), entryOf('/p', known)).fetched.revisit, false)
    assert.equal(fetchOne(() => html('same', { truncated: 'time' }), entryOf('/p', known)).fetched.revisit, false)
  })

  test('W1: the archive gets the head as received and the body with its content coding, and its digest', () => {
    const headers: [string, string][] = [
      ['Transfer-Encoding', 'chunked'],
      ['Content-Encoding', 'gzip'],
      ['X-A', 'caf\xe9'],
    ]
    const { task, fetched } = fetchOne(() =>
      html('plain', { headers, rawBody: Buffer.from('12345'), statusText: 'Fine' }),
    )
    const { responseHead, rawBody, payloadDigest } = task.archive.exchanges[0]!
    assert.equal(
      responseHead.toString('latin1'),
      'HTTP/1.1 200 Fine\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip\r\nX-A: caf\xe9\r\n\r\n',
    )
    assert.equal(rawBody.toString(), '12345')
    assert.ok(sha1('12345').equals(Buffer.from(payloadDigest)))
    assert.deepEqual([fetched.rawBytes, fetched.bodyBytes], [5, 5])
  })
})

describe('redirects', () => {
  const moved = (location: string, more: [string, string][] = []) => answer(301, [['Location', location], ...more])

  test('D2: the target comes back as a link, at the depth of what redirected', () => {
    const { task, fetched } = fetchOne(() => moved('//b.example/caf\xc3\xa9?q#f'), entryOf('/p', { seedChain: true }))
    assert.deepEqual(task.completions, [['discovered-urls', 'fetched']])
    assert.equal(fetched.location, 'http://b.example/caf%C3%A9?q')
    const { key, value } = task.of('discovered-urls')[0]!
    assert.deepEqual([key, value.source, value.depth, value.sourceKind], [fetched.key, fetched.key, 2, 'page'])
    assert.deepEqual(
      [...iterateLinks(value.links)],
      [
        {
          kind: 'redirect',
          flags: linkFlags.seedChain,
          href: 'http://b.example/caf%C3%A9?q',
        },
      ],
    )
    assert.equal(task.http.started.length, 1)
  })

  test('without a seed behind it the link has no flag', () => {
    const { task } = fetchOne(() => moved('/next'))
    assert.deepEqual([...iterateLinks(task.of('discovered-urls')[0]!.value.links)][0]!.flags, 0)
  })

  test('D1: a redirect to itself is a decision, no link', () => {
    for (const [more, evidence] of [
      [[['Set-Cookie', 'a=b']], /cookie/],
      [[], /itself$/],
    ] as [[string, string][], RegExp][]) {
      const { task, fetched } = fetchOne(() => moved('/page', more))
      assert.deepEqual(task.completions, [['decisions', 'fetched']])
      const { value } = task.of('decisions')[0]!
      assert.equal(value.reasons[0]!.code, 'redirect-to-self')
      assert.match(value.evidence!, evidence)
      assert.equal(fetched.location, 'http://a.example/page')
    }
  })

  test('a Location that is no URL is no target', () => {
    for (const location of ['http://[', 'http://', `/${'a'.repeat(9000)}`]) {
      const { task, fetched } = fetchOne(() => moved(location))
      assert.equal(fetched.location, null)
      assert.deepEqual(task.completions, [['fetched']])
    }
    assert.equal(fetchOne(() => answer(200, [['Location', '/x']])).fetched.location, null)
  })
})

describe('robots', () => {
  const origin = 'http://a.example/robots.txt'
  const robots = (script: Parameters<typeof openFetch>[0], url = origin) => {
    const task = openFetch(script)
    task.take(
      visitOf([entryOf(url, { entryKind: 'robots', depth: 0 })], {
        visitKind: 'robots',
        robotsVersion: null,
      }),
    )
    task.settle()
    return task
  }

  test('the body is in the outcome; the request is not bound to a type', () => {
    const task = robots(() => answer(200, [['content-type', 'application/octet-stream']], 'User-agent: *'))
    const [fetched] = task.fetched()
    assert.deepEqual([fetched!.key, fetched!.outcomeKind, fetched!.status], [`robots:${origin}`, 'robots', 200])
    assert.equal(Buffer.from(fetched!.robotsBody!).toString(), 'User-agent: *')
    assert.equal(task.http.asked[0]!.accepts('image/png'), true)
    assert.equal(task.http.asked[0]!.maxBodyBytes, 512 * 1024)
    assert.deepEqual(task.completions, [['fetched']])
  })

  test('R13: hops on the host are followed, a delay apart, each with its own record and exchange', () => {
    const hops: { [url: string]: string } = {
      [origin]: 'https://a.example/robots.txt',
      'https://a.example/robots.txt': '/r/robots.txt',
    }
    const task = robots((url) => {
      const to = hops[url]
      return to === undefined ? answer(200, [], 'rules') : answer(302, [['location', to]])
    })
    assert.deepEqual(
      task.http.started.map(({ url, atMs }) => [url, atMs]),
      [
        [origin, 0],
        ['https://a.example/robots.txt', 1010],
        ['https://a.example/r/robots.txt', 2020],
      ],
    )
    const records = task.fetched()
    assert.deepEqual(
      records.map(({ key, url, status, reason, fetchId }) => [key, url, status, reason, fetchId.split('.').at(-1)]),
      [
        [`robots:${origin}`, origin, 302, 'hop', '0'],
        ['robots:https://a.example/robots.txt', 'https://a.example/robots.txt', 302, 'hop', '1'],
        [`robots:${origin}`, origin, 200, null, '2'],
      ],
    )
    assert.equal(task.archive.exchanges.length, 3)
    assert.equal(new Set(records.map(({ fetchId }) => fetchId)).size, 3)
  })

  test('R13: a hop to another host is not made here: its status and target are the outcome', () => {
    for (const target of ['http://b.example/robots.txt', 'http://a.example:8080/robots.txt', 'http://www.a.example/']) {
      const task = robots(() => answer(301, [['location', target]]))
      const records = task.fetched()
      assert.equal(records.length, 1)
      assert.deepEqual([records[0]!.status, records[0]!.location, records[0]!.reason], [301, target, null])
    }
  })

  test('at most five hops', () => {
    const task = robots((_url, nth) => answer(302, [['location', `/r${nth}`]]))
    assert.equal(task.http.started.length, 6)
    const last = task.fetched().at(-1)!
    assert.deepEqual([last.key, last.status, last.reason], [`robots:${origin}`, 302, null])
  })

  test('a deadline between two hops gives the entry back', () => {
    const task = openFetch(() => answer(302, [['location', '/next']]))
    const entry = entryOf(origin, { entryKind: 'robots' })
    task.take(visitOf([entry], { visitKind: 'robots', deadline: startMs + 60_500 }))
    task.settle()
    const [hop, end] = task.fetched()
    assert.deepEqual([hop!.reason, end!.reason, end!.unstarted], ['hop', 'deadline', [origin]])
    assert.notEqual(hop!.fetchId, end!.fetchId)
  })

  test('R1: 5xx, resets and cut bodies are told from rules', () => {
    const unavailable = robots(() => answer(503, [], '<html>')).fetched()[0]!
    assert.deepEqual([unavailable.status, unavailable.robotsBody], [503, null])
    const reset = robots(() => ({
      kind: 'error',
      error: 'reset',
      takesMs: 5,
    })).fetched()[0]!
    assert.deepEqual(
      [reset.key, reset.outcomeKind, reset.error, reset.status],
      [`robots:${origin}`, 'robots', 'reset', 0],
    )
    const cut = robots(() => html('User-agent', { truncated: 'disconnect', bodyError: 'reset' })).fetched()[0]!
    assert.deepEqual([cut.status, cut.error, cut.truncated], [200, 'reset', 'disconnect'])
  })

  test('origins of one visit: a refused one does not end it', () => {
    const task = openFetch((url) => (url.startsWith('https') ? { kind: 'error', error: 'refused' } : answer(404)))
    const entries = ['https://a.example/robots.txt', origin].map((url) => entryOf(url, { entryKind: 'robots' }))
    task.take(visitOf(entries, { visitKind: 'robots' }))
    task.settle()
    assert.deepEqual(
      task.fetched().map(({ key, status, error }) => [key, status, error]),
      [
        ['robots:https://a.example/robots.txt', 0, 'refused'],
        [`robots:${origin}`, 404, 'none'],
      ],
    )
  })
})

describe('resolve', () => {
  const resolve = (result: Parameters<typeof openFetch>[1] & object) => {
    const task = openFetch(() => html(''), result)
    task.take(visitOf([], { visitKind: 'resolve', address: null, gate: 'h:a.example' }))
    task.settle()
    assert.equal(task.inFlight(), 0)
    assert.equal(task.http.asked.length, 0)
    return task.fetched()[0]!
  }
  const found = (...addresses: string[]) => ({
    resolve: () => ({ kind: 'ok', addresses, ttlMs: 60_000 }) as const,
  })

  test('X1: addresses that are not public are left out', () => {
    const record = resolve(found('10.0.0.1', '93.184.216.34', '::ffff:127.0.0.1', '2606:2800:220:1::1'))
    assert.deepEqual([record.key, record.outcomeKind, record.error], ['dns:a.example', 'dns', 'none'])
    assert.deepEqual(record.addresses, ['93.184.216.34', '2606:2800:220:1::1'])
    assert.deepEqual([record.ttlMs, record.startedAt], [60_000, 0])
  })

  test('X1: with none left the host is refused, unless private addresses are allowed', () => {
    const record = resolve(found('127.0.0.1', '100.64.0.1'))
    assert.deepEqual([record.error, record.addresses], ['address-refused', []])
    assert.match(record.errorMessage!, /127\.0\.0\.1, 100\.64\.0\.1/)
    assert.deepEqual(resolve({ ...found('127.0.0.1'), allowPrivate: true }).addresses, ['127.0.0.1'])
  })

  test('failures are told apart', () => {
    for (const [error, expected] of [
      ['nxdomain', 'nxdomain'],
      ['servfail', 'servfail'],
      ['timeout', 'dns-timeout'],
    ] as const) {
      assert.equal(resolve({ resolve: () => ({ kind: 'error', error, message: 'm' }) }).error, expected)
    }
  })
})

describe('the archive', () => {
  test('the outcome waits for the sync, the next request does not', async () => {
    const syncs: (() => void)[] = []
    const task = openFetch(() => html('x'), {
      archive: {
        append: () => ({ file: 'f', offset: 0, length: 1 }),
        sync: () => new Promise<void>((resolve) => syncs.push(resolve)),
        read: () => Promise.reject(new Error('unused')),
        close: async () => {},
      },
    })
    task.take(visitOf([entryOf('/0'), entryOf('/1')]))
    task.settle()
    assert.equal(task.http.started.length, 2)
    assert.equal(task.out.length, 0)
    assert.equal(task.inFlight(), 1)
    for (const synced of syncs) synced()
    await new Promise(setImmediate)
    assert.equal(task.fetched().length, 2)
    assert.equal(task.inFlight(), 0)
  })

  test('an archive that cannot write stops the process', () => {
    const broken = {
      append: () => {
        throw new Error('no space left')
      },
      sync() {},
      read: () => Promise.reject(new Error('unused')),
      close: async () => {},
    }
    const task = openFetch(() => html('x'), { archive: broken })
    task.take(visitOf([entryOf('/0')]))
    assert.throws(
      () => task.settle(),
      (error) => error instanceof StopProcessError && error.code === 'archive' && /no space left/.test(error.message),
    )
    assert.equal(task.out.length, 0)
  })

  test('the fault point lies after the archive record and before the outcome', () => {
    const seen: string[] = []
    const task: ReturnType<typeof openFetch> = openFetch(() => html('x'), {
      faults: { hit: (point) => seen.push(`${point}: ${task.archive.exchanges.length}, ${task.out.length}`) },
    })
    task.take(visitOf([entryOf('/0')]))
    task.settle()
    assert.deepEqual(seen, ['warc-written: 1, 0'])
  })
})
