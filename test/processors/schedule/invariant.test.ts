import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { FetchError } from '../../../schemas/types.ts'
import { Harness, leastGapMs } from './harness.ts'
import { candidate, day, hour, minute, outcome, type Reply, second } from './records.ts'

const seed = Number(process.env.WEIR_TEST_SEED ?? Date.now() % 2 ** 31)

/** How many answers of a run are random; a web that never gets well would only take long. */
const troubles = 150
const errors: FetchError[] = [
  'nxdomain',
  'servfail',
  'refused',
  'reset',
  'tls',
  'headers-timeout',
  'body-timeout',
  'protocol',
  'address-changed',
  'address-refused',
]
const reply = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom(200, 200, 301, 304, 404, 410, 403, 500, 502, 503, 429, 418) },
  { weight: 3, arbitrary: fc.constantFrom(...errors) },
  { weight: 1, arbitrary: fc.constantFrom('not-started' as const, 'silent' as const) },
)
const action = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('admit' as const),
      host: fc.nat({ max: 3 }),
      page: fc.nat({ max: 30 }),
      depth: fc.nat({ max: 6 }),
      https: fc.boolean(),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('run' as const),
      ms: fc.constantFrom(100, second, 20 * second, 3 * minute, 2 * hour, 2 * day, 20 * day),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const), isNewProcess: fc.boolean() }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('noise' as const),
      visit: fc.nat(),
      index: fc.nat({ max: 6 }),
      kind: fc.constantFrom('page' as const, 'robots' as const, 'dns' as const, 'visit-end' as const),
      status: fc.constantFrom(0, 200, 404, 503),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('robots' as const),
      text: fc.constantFrom(
        '',
        'User-agent: *\nDisallow: /1',
        'User-agent: *\nDisallow: /',
        'User-agent: *\nDisallow: /2',
      ),
      status: fc.constantFrom(200, 200, 404, 503),
    }),
  },
)

function answer(what: number | FetchError | 'not-started' | 'silent'): Reply | 'not-started' | 'silent' {
  if (what === 'not-started' || what === 'silent') return what
  if (typeof what === 'number') return { status: what, ...(what === 301 ? { location: 'http://b.test/' } : {}) }
  return { status: 0, error: what, startedAt: 0 }
}

test(`P1, Q7: each URL is in exactly one state after every step, whatever happens; the delay is kept (seed ${seed})`, () => {
  fc.assert(
    fc.property(
      fc.array(action, { minLength: 5, maxLength: 40 }),
      fc.array(reply, { minLength: 1, maxLength: 20 }),
      (actions, replies) => {
        let asked = 0
        let robots: Reply = { status: 404 }
        const h = new Harness(
          { page: () => (asked < troubles ? answer(replies[asked++ % replies.length]!) : {}), robots: () => robots },
          { maxDepth: 4, maxPagesPerHost: 40, maxPagesPerSite: 60, recrawlMs: hour },
        )
        for (const a of actions) {
          if (a.do === 'admit') {
            const url = `${a.https ? 'https' : 'http'}://h${a.host}.test/${a.page}`
            h.admit([url, candidate(url, { depth: a.depth, improved: true, site: 'test' })])
          } else if (a.do === 'run') {
            h.run(a.ms)
          } else if (a.do === 'restart') {
            if (a.isNewProcess) h.set({ leasesVoidBeforeMs: h.now })
            h.restart(a.isNewProcess)
          } else if (a.do === 'robots') {
            robots = { status: a.status, robotsBody: Buffer.from(a.text) }
          } else if (h.visits.length > 0) {
            const v = h.visits[a.visit % h.visits.length]!
            const entry = v.urls[a.index % Math.max(1, v.urls.length)]
            const key = entry?.key ?? `http://${v.host}/none`
            const prefix = { page: '', robots: 'robots:', dns: 'dns:', 'visit-end': 'visit:' }[a.kind]
            h.tell(
              a.kind === 'dns' || a.kind === 'visit-end' ? `${prefix}${v.host}` : `${prefix}${key}`,
              outcome({
                outcomeKind: a.kind,
                host: v.host,
                leaseId: v.leaseId,
                fetchId: `${v.leaseId}.${a.index}.9.9`,
                index: a.index,
                status: a.status,
                startedAt: h.now,
                endedAt: h.now,
                unstarted: a.kind === 'visit-end' ? [key] : [],
              }),
            )
          }
          h.checkSums()
        }
        h.web = {}
        assert.equal(h.deadLetters(), 0)
        for (let host = 0; host < 4; host++) assert.ok(leastGapMs(h.requests, `h${host}.test`) >= 1000)
      },
    ),
    { seed, numRuns: Number(process.env.WEIR_TEST_RUNS ?? 25), endOnFailure: false },
  )
})

test(`P1: whatever has happened, every URL is asked for in the end when the web is well again (seed ${seed})`, () => {
  fc.assert(
    fc.property(fc.array(reply, { minLength: 1, maxLength: 20 }), fc.integer({ min: 1, max: 20 }), (replies, n) => {
      let asked = 0
      const h = new Harness({ page: () => (asked < troubles ? answer(replies[asked++ % replies.length]!) : {}) })
      for (let i = 0; i < n; i++) {
        const url = `http://h${i % 2}.test/${i}`
        h.admit([url, candidate(url)])
      }
      h.run(2 * day)
      h.web = {}
      h.run(100 * day)
      h.checkSums()
      for (const key of h.admitted) assert.equal(h.page(key).state, 'known', `${key}: ${h.page(key).evidence}`)
    }),
    { seed, numRuns: Number(process.env.WEIR_TEST_RUNS ?? 8) },
  )
})
