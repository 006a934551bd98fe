import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  deadlineOf,
  delayOf,
  observeResponse,
  observeSuccess,
  observeThrottle,
  readyAt,
  visitPlan,
} from '../../../processors/schedule/delay.ts'
import { newHost, newOrigin } from '../../../processors/schedule/records.ts'

const settings = { minDelayMs: 1000, maxDelayMs: 60_000 }
const full = { ...settings } as Parameters<typeof observeThrottle>[1]

function host(change: Partial<ReturnType<typeof newHost>> = {}, crawlDelayMs: number | null = null) {
  return { ...newHost('a.test'), origins: [{ ...newOrigin('http://a.test'), crawlDelayMs }], ...change }
}

test('delay: the minimum, ten times the response time, at most a minute', () => {
  assert.deepEqual(delayOf(host(), settings), { delayMs: 1000, reason: 'minimum' })
  assert.deepEqual(delayOf(host({ responseMs: 50 }), settings), { delayMs: 1000, reason: 'minimum' })
  assert.deepEqual(delayOf(host({ responseMs: 300 }), settings), { delayMs: 3000, reason: 'response-time' })
  assert.deepEqual(delayOf(host({ responseMs: 30_000 }), settings), { delayMs: 60_000, reason: 'response-time' })
  assert.equal(delayOf(host(), { minDelayMs: 120_000, maxDelayMs: 60_000 }).delayMs, 120_000)
})

test('delay: 0 takes the response time out too, but a crawl-delay is obeyed', () => {
  const none = { minDelayMs: 0, maxDelayMs: 60_000 }
  assert.equal(delayOf(host({ responseMs: 5000 }), none).delayMs, 0)
  assert.deepEqual(delayOf(host({}, 2000), none), { delayMs: 2000, reason: 'crawl-delay' })
})

test('R14: crawl-delay is max(minimum, value), up to 24 h', () => {
  assert.deepEqual(delayOf(host({}, 100), settings), { delayMs: 1000, reason: 'minimum' })
  assert.deepEqual(delayOf(host({}, 90_000), settings), { delayMs: 90_000, reason: 'crawl-delay' })
  assert.equal(delayOf(host({}, 86_400_000), settings).delayMs, 86_400_000)
  assert.equal(delayOf(host({}, 1e12), settings).delayMs, 86_400_000)
})

test('delay: latency over twice its baseline doubles it', () => {
  const h = host()
  for (let i = 0; i < 20; i++) observeResponse(h, 80, 40)
  assert.deepEqual(delayOf(h, settings), { delayMs: 1000, reason: 'minimum' })
  for (let i = 0; i < 5; i++) observeResponse(h, 100, 400)
  assert.deepEqual(delayOf(h, settings), { delayMs: 2000, reason: 'latency' })
})

test('Q11: throttling doubles from a second to an hour, and eases by a tenth a success', () => {
  const h = host()
  const steps: number[] = []
  for (let i = 0; i < 14; i++) {
    observeThrottle(h, full)
    steps.push(h.throttledMs)
  }
  assert.deepEqual(steps.slice(0, 4), [2000, 4000, 8000, 16_000])
  assert.equal(steps.at(-1), 3_600_000)
  observeSuccess(h, full)
  assert.equal(h.throttledMs, 3_240_000)
  for (let i = 0; i < 100; i++) observeSuccess(h, full)
  assert.equal(h.throttledMs, 0)
})

test('readyAt: the last end plus the delay, 0 before a first request', () => {
  assert.equal(readyAt(host(), settings), 0)
  assert.equal(readyAt(host({ lastEndedAt: 5000 }), settings), 6000)
  assert.equal(readyAt(host({ lastEndedAt: 5000, holdUntil: 9000 }), settings), 9000)
})

test('visit size and deadline', () => {
  assert.deepEqual(visitPlan(1000, 100), { planMs: 30_000, size: 5 })
  assert.deepEqual(visitPlan(10_000, 1000), { planMs: 30_000, size: 2 })
  assert.deepEqual(visitPlan(30_000, 10), { planMs: 30_000, size: 1 })
  assert.deepEqual(visitPlan(86_400_000, 10), { planMs: 30_000, size: 1 })
  assert.deepEqual(visitPlan(999, 1), { planMs: 2000, size: 2 })
  assert.deepEqual(visitPlan(0, 2), { planMs: 2000, size: 256 })
  assert.deepEqual(visitPlan(0, 0), { planMs: 2000, size: 256 })
  assert.deepEqual(visitPlan(0, 100), { planMs: 2000, size: 20 })
  assert.equal(deadlineOf(1_000_000, 30_000, 60_000), 1_100_000)
})
