import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createVirtualClock } from '../../../connectors/clock/virtual.ts'
import { createFetch } from '../../../processors/fetch/fetch.ts'
import type { FetchOptions } from '../../../processors/fetch/types.ts'
import { stringSerde, topicSerde } from '../../../schemas/codec.ts'
import type { Decision, DiscoveredUrls, Fetched, Parsed, Visit } from '../../../schemas/types.ts'
import { TopologyTestDriver } from '../../../topology/streams/driver.ts'
import { StopProcessError } from '../../../topology/streams/errors.ts'
import { Topology } from '../../../topology/streams/topology.ts'
import { type TopicName, topicSpecs } from '../../../topology/topics.ts'
import {
  type Answer,
  entryOf,
  html,
  recordingArchive,
  scriptedHttp,
  scriptedResolver,
  startMs,
  toyParse,
  visitOf,
} from './harness.ts'

/** The fetch application alone on the test driver. */
function openDriver(script: (url: string, nth: number) => Answer, options: Partial<FetchOptions> = {}) {
  const clock = createVirtualClock(startMs)
  const http = scriptedHttp(clock, script)
  const serdes = <V>(name: TopicName) => ({ keySerde: stringSerde, valueSerde: topicSerde<V>(name) })
  const source = { topics: ['t.host-scheduled'], ...serdes<Visit>('host-scheduled') }
  const sink = <V>(name: TopicName) => ({ topic: `t.${name}`, ...serdes<V>(name), partitioner: () => 0 })
  const fetch = createFetch({
    http: http.client,
    resolver: scriptedResolver(clock, () => ({ kind: 'ok', addresses: ['93.184.216.34'], ttlMs: 60_000 })),
    archive: recordingArchive().archive,
    parse: toyParse,
    userAgent: 'weir-test',
    agentToken: 'weir-test',
    ...options,
  })
  const topology = new Topology('fetch')
    .addSource('host-scheduled', source)
    .addProcessor('fetch', fetch, ['host-scheduled'])
    .addSink('discovered-urls', sink<DiscoveredUrls>('discovered-urls'), ['fetch'])
    .addSink('parsed', sink<Parsed>('parsed'), ['fetch'])
    .addSink('decisions', sink<Decision>('decisions'), ['fetch'])
    .addSink('fetched', sink<Fetched>('fetched'), ['fetch'])
  const driver = new TopologyTestDriver({
    clock,
    startWallMs: startMs,
    topics: topicSpecs('t', 1),
    applications: [{ applicationId: 't-fetch', topology, guarantee: 'ack_on_take' }],
  })
  const visits = driver.createInputTopic('t.host-scheduled', stringSerde, topicSerde<Visit>('host-scheduled'))
  const fetched = driver.createOutputTopic('t.fetched', stringSerde, topicSerde<Fetched>('fetched'))
  const links = driver.createOutputTopic(
    't.discovered-urls',
    stringSerde,
    topicSerde<DiscoveredUrls>('discovered-urls'),
  )
  const parsed = driver.createOutputTopic('t.parsed', stringSerde, topicSerde<Parsed>('parsed'))
  return { clock, http, driver, visits, fetched, links, parsed }
}

test('visits of several hosts run side by side, each at its own pace, and end in the log', () => {
  const task = openDriver((url) => html(`href=${url}/next`))
  for (const host of ['a.example', 'b.example']) {
    const urls = [0, 1, 2].map((i) => entryOf(`http://${host}/${i}`))
    task.visits.pipeInput(host, visitOf(urls, { host, site: host, leaseId: `${host}-1` }))
  }
  task.driver.advanceWallClockTime(10_000)
  for (const host of ['a.example', 'b.example']) {
    const starts = task.http.started.filter(({ url }) => url.includes(host)).map(({ atMs }) => atMs)
    assert.deepEqual(starts, [0, 1010, 2020], host)
  }
  const records = task.fetched.readRecordsToList()
  assert.equal(records.length, 6)
  assert.ok(records.every(({ value }) => value?.status === 200 && value.outcomeKind === 'page'))
  assert.equal(new Set(records.map(({ value }) => value!.fetchId)).size, 6)
  assert.equal(task.links.readRecordsToList().length, 6)
  assert.equal(task.parsed.readRecordsToList().length, 6)
  assert.equal(task.driver.inFlight(), 0)
})

test('what was taken is not read again: after a crash the visit is left to its lease', () => {
  const task = openDriver(() => html('x'))
  task.visits.pipeInput('a.example', visitOf([0, 1, 2].map((i) => entryOf(`/${i}`))))
  task.driver.advanceWallClockTime(1_500)
  assert.equal(task.http.started.length, 2)
  task.driver.restart()
  task.driver.advanceWallClockTime(20_000)
  assert.equal(task.http.started.length, 2)
  // After the restart nothing is remembered of the host: its next visit waits a whole delay from the taking.
  const at = task.clock.monotonicMs()
  const next = { leaseId: '0123456789abcdef-8', lastEndedAt: startMs + 1020, deadline: startMs + 200_000 }
  task.visits.pipeInput('a.example', visitOf([entryOf('/2')], next))
  task.driver.advanceWallClockTime(20_000)
  assert.equal(task.http.started.at(-1)!.atMs, at + 1000)
  assert.equal(task.fetched.readRecordsToList().length, 3)
})

test('resolve and a tombstone', () => {
  const task = openDriver(() => html('x'))
  task.visits.pipeInput('a.example', visitOf([], { visitKind: 'resolve', address: null, gate: 'h:a.example' }))
  task.visits.pipeInput('a.example', null)
  task.driver.advanceWallClockTime(100)
  const [record, ...more] = task.fetched.readRecordsToList()
  assert.deepEqual([record!.key, record!.value!.addresses, more.length], ['dns:a.example', ['93.184.216.34'], 0])
})

test('a visit stamped far ahead stops the process', () => {
  const task = openDriver(() => html('x'))
  assert.throws(
    () => task.visits.pipeInput('a.example', visitOf([entryOf('/')], { notBefore: startMs + 60_000 })),
    (error) => error instanceof StopProcessError && error.code === 'clock-skew',
  )
  assert.equal(task.http.started.length, 0)
})
