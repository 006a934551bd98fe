import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { StopProcessError } from '../../../topology/streams/errors.ts'
import { answer, entryOf, html, openFetch, startMs, visitOf } from './harness.ts'

const pages = (n: number) => Array.from({ length: n }, (_, i) => entryOf(`/${i}`))
const starts = (task: ReturnType<typeof openFetch>) => task.http.started.map(({ atMs }) => atMs)

describe('the start rule', () => {
  test("a host's first request ever starts at once, the next ones a delay after the last response's end", () => {
    const task = openFetch(() => html('x', { takesMs: 300 } as object))
    task.take(visitOf(pages(3)))
    task.settle()
    assert.deepEqual(starts(task), [0, 1300, 2600])
    assert.equal(task.inFlight(), 0)
  })

  test("a visit's first request waits a delay from the taking when another may have asked last", () => {
    const task = openFetch(() => html('x'))
    task.take(visitOf(pages(2), { lastEndedAt: startMs - 60_000 }))
    task.settle()
    assert.deepEqual(starts(task), [1000, 2010])
  })

  test("a fetcher that had the host's last response measures from it", () => {
    const task = openFetch(() => html('x'))
    task.take(visitOf(pages(1)))
    task.settle()
    task.clock.advanceTo(400)
    task.take(visitOf(pages(1), { lastEndedAt: startMs + 10 }))
    task.settle()
    assert.deepEqual(starts(task), [0, 1010])
  })

  test('it does not when the schedule knows of a later response', () => {
    const task = openFetch(() => html('x'))
    task.take(visitOf(pages(1)))
    task.settle()
    task.clock.advanceTo(5000)
    task.take(visitOf(pages(1), { lastEndedAt: startMs + 4000 }))
    task.settle()
    assert.deepEqual(starts(task), [0, 6000])
  })

  test('no request before notBefore by the wall clock', () => {
    const task = openFetch(() => html('x'))
    task.take(visitOf(pages(2), { notBefore: startMs + 3000 }))
    task.settle()
    assert.deepEqual(starts(task), [3000, 4010])
  })

  test('a slow connect delays the check and does not shorten the gap', () => {
    const task = openFetch(() => ({
      kind: 'response',
      connectMs: 700,
      takesMs: 10,
    }))
    task.take(visitOf(pages(2)))
    task.settle()
    assert.deepEqual(starts(task), [700, 2410])
  })

  test('a connect that takes the visit past its deadline starts nothing', () => {
    const task = openFetch((_url, nth) => ({
      kind: 'response',
      connectMs: nth === 1 ? 8_000 : 0,
    }))
    task.take(visitOf(pages(3), { deadline: startMs + 65_000 }))
    task.settle()
    assert.deepEqual(starts(task), [0])
    const end = task.fetched().at(-1)!
    assert.equal(end.outcomeKind, 'visit-end')
    assert.deepEqual(end.unstarted, ['http://a.example/1', 'http://a.example/2'])
  })

  test('what the deadline does not allow comes back in one visit-end record', () => {
    const task = openFetch(() => html('x'))
    task.take(visitOf(pages(5), { deadline: startMs + 61_500 }))
    task.settle()
    assert.deepEqual(starts(task), [0, 1010])
    const [first, second, end, ...more] = task.fetched()
    assert.deepEqual([first!.status, second!.status, more.length], [200, 200, 0])
    assert.equal(end!.key, 'visit:a.example')
    assert.deepEqual([end!.outcomeKind, end!.index, end!.reason, end!.status], ['visit-end', 2, 'deadline', 0])
    assert.deepEqual(end!.unstarted, ['http://a.example/2', 'http://a.example/3', 'http://a.example/4'])
    assert.equal(task.inFlight(), 0)
  })

  test('a visit that is taken too late asks nothing', () => {
    const task = openFetch(() => html('x'))
    task.clock.advanceTo(50_000)
    task.take(visitOf(pages(2)))
    task.settle()
    assert.deepEqual(starts(task), [])
    assert.equal(task.fetched()[0]!.unstarted.length, 2)
  })

  test('a visit stamped further ahead than clocks may differ stops the process', () => {
    const task = openFetch(() => html('x'))
    assert.throws(
      () => task.take(visitOf(pages(1), { notBefore: startMs + 6_000 })),
      (error) =>
        error instanceof StopProcessError && error.code === 'clock-skew' && /6000 ms ahead/.test(error.message),
    )
    task.take(visitOf(pages(1), { notBefore: startMs + 5_000 }))
    task.settle()
    assert.deepEqual(starts(task), [5000])
  })

  test('a delay of 0 leaves no gap', () => {
    const task = openFetch(() => html('x'))
    task.take(visitOf(pages(3), { delayMs: 0 }))
    task.settle()
    assert.deepEqual(starts(task), [0, 10, 20])
  })

  test('a second visit of the same host waits for the first, other hosts do not', () => {
    const task = openFetch(() => html('x', { takesMs: 100 } as object))
    task.take(visitOf(pages(2)))
    task.take(
      visitOf([entryOf('/again')], {
        leaseId: '0123456789abcdef-8',
        lastEndedAt: startMs,
      }),
    )
    task.settle()
    assert.deepEqual(
      task.http.started.map(({ url, atMs }) => [url.slice(16), atMs]),
      [
        ['/0', 0],
        ['/1', 1100],
        ['/again', 2200],
      ],
    )
  })
})

describe('visits', () => {
  test('a tombstone is no work and cancels nothing', () => {
    const task = openFetch(() => html('x'))
    task.take(visitOf(pages(2)))
    task.take(null)
    task.settle()
    assert.equal(task.http.started.length, 2)
  })

  test('a failure of the host ends the visit: nothing more is tried', () => {
    const task = openFetch(() => ({ kind: 'error', error: 'refused' }))
    task.take(visitOf(pages(3)))
    task.settle()
    assert.equal(task.http.asked.length, 1)
    const [first, end] = task.fetched()
    assert.deepEqual([first!.error, first!.startedAt, first!.status], ['refused', 0, 0])
    assert.deepEqual([end!.reason, end!.unstarted.length], ['refused', 2])
  })

  test("a failure of one page does not end it, and the gap counts from the failure's end", () => {
    const task = openFetch((_url, nth) =>
      nth === 0 ? { kind: 'error', error: 'headers-timeout', takesMs: 30_000 } : html('x'),
    )
    task.take(visitOf(pages(2)))
    task.settle()
    assert.deepEqual(starts(task), [0, 31_000])
    const [first] = task.fetched()
    assert.deepEqual([first!.error, first!.startedAt], ['headers-timeout', startMs])
  })

  test('Q10: 429 and 503 end the visit; Retry-After in both forms, at most 24 h', () => {
    const date = 'Thu, 01 Jan 2026 00:02:00 GMT'
    const cases: [string | null, number | null][] = [
      ['3400', 3_400_000],
      [date, 119_990],
      ['Wed, 31 Dec 2025 00:00:00 GMT', 0],
      ['999999999', 86_400_000],
      ['soon', null],
      ['-5', null],
      [null, null],
    ]
    for (const [value, expected] of cases) {
      for (const status of [429, 503]) {
        const task = openFetch(() => answer(status, value === null ? [] : [['retry-after', value]]))
        task.take(visitOf(pages(3)))
        task.settle()
        const [first, end] = task.fetched()
        assert.equal(first!.retryAfterMs, expected, String(value))
        assert.deepEqual([end!.reason, end!.unstarted.length], ['back-off', 2])
        assert.equal(task.http.started.length, 1)
      }
    }
  })

  test('stopping: what is open ends, nothing else starts, and the rest is named', () => {
    const stopping = new AbortController()
    const task = openFetch(() => html('x', { takesMs: 500 } as object), { stopping: stopping.signal })
    task.take(visitOf(pages(3)))
    task.take(visitOf(pages(2), { host: 'b.example', leaseId: 'b-1', lastEndedAt: startMs }))
    task.clock.advanceTo(200)
    stopping.abort()
    task.settle()
    assert.equal(task.http.started.length, 1)
    assert.deepEqual(
      task.fetched().map(({ key, reason, unstarted }) => [key, reason, unstarted.length]),
      [
        ['visit:b.example', 'stopping', 2],
        ['http://a.example/0', null, 0],
        ['visit:a.example', 'stopping', 2],
      ],
    )
    assert.equal(task.inFlight(), 0)
  })

  test('closing the task stops everything: no request, no record', () => {
    const task = openFetch(() => html('x', { takesMs: 500 } as object))
    task.take(visitOf(pages(3)))
    task.take(visitOf(pages(1), { host: 'b.example', lastEndedAt: startMs }))
    task.clock.advanceTo(200)
    task.processor.close!()
    task.settle()
    assert.equal(task.http.started.length, 1)
    assert.equal(task.out.length, 0)
    assert.equal(task.inFlight(), 0)
  })
})
