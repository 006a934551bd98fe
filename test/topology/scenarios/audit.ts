/** What must hold of every crawl, whatever its web did: asked of its records and of schedule's stores. */
import assert from 'node:assert/strict'
import * as keys from '../../../processors/schedule/keys.ts'
import { effectiveState, readCounts, type Tasks } from '../../../processors/schedule/read.ts'
import { topicSerde } from '../../../schemas/codec.ts'
import type {
  Candidate,
  Control,
  Decision,
  DiscoveredUrls,
  Fetched,
  HostPolicy,
  PageState,
  Parsed,
} from '../../../schemas/types.ts'
import type { TopicName } from '../../../topology/topics.ts'

export interface TopicRecord<V> {
  readonly key: string
  readonly value: V
  readonly timestamp: number
  readonly partition: number
}

/** Whatever gives the records of a topic, tombstones left out, partition by partition. */
export interface Records {
  raw(topic: TopicName): Iterable<{ partition: number; timestamp: number; key: Uint8Array; value: Uint8Array | null }>
}

type Values = {
  'discovered-urls': DiscoveredUrls
  canonicalized: Candidate
  unseen: Candidate
  fetched: Fetched
  parsed: Parsed
  'page-states': PageState
  'host-policies': HostPolicy
  decisions: Decision
  controls: Control
}

export function recordsOf<T extends keyof Values>(records: Records, topic: T): TopicRecord<Values[T]>[] {
  const serde = topicSerde<Values[T]>(topic)
  const list: TopicRecord<Values[T]>[] = []
  for (const { partition, timestamp, key, value } of records.raw(topic)) {
    if (value === null) continue
    list.push({ key: Buffer.from(key).toString('utf8'), value: serde.deserialize(value), timestamp, partition })
  }
  return list
}

/** The state of every URL, by its key: `known/ok`, `parked/robots`. */
export function statesOf(tasks: Tasks): Map<string, string> {
  const states = new Map<string, string>()
  for (const { pages, hosts, frontier } of tasks) {
    for (const [, page] of pages.range(undefined, undefined, {})) {
      const { state, reason } = effectiveState(page, hosts.get(page.host)!, frontier.get(keys.leaseKey(page.host)))
      assert.ok(!states.has(page.url), `${page.url} is in two tasks`)
      states.set(page.url, `${state}/${reason}`)
    }
  }
  return states
}

/**
 * The counts equal a recount of the stores, every admitted URL has one state, every host's lists have the lengths that
 * its record says, every link is accounted for, and nothing is in the dead letters.
 */
export function audit(records: Records, tasks: Tasks): void {
  const counts = readCounts(tasks)
  const states = statesOf(tasks)
  const recount: { [state: string]: number } = {}
  for (const state of states.values()) recount[state] = (recount[state] ?? 0) + 1
  assert.deepEqual({ ...counts.states }, recount, 'the kept counts are those of a recount')
  assert.equal(counts.admitted, states.size)

  const unseen = recordsOf(records, 'unseen')
  const admitted = new Set(unseen.filter(({ value }) => !value.improved).map(({ key }) => key))
  assert.equal(unseen.filter(({ value }) => !value.improved).length, admitted.size, 'a URL enters once')
  assert.deepEqual([...states.keys()].sort(), [...admitted].sort(), 'every URL that dedupe let through has a state')

  auditLists(tasks)
  auditLinks(records)
  assert.equal([...records.raw('dead-letters')].length, 0, 'dead letters')
}

/** The lists of each host in its frontier are as long as its record says. */
function auditLists(tasks: Tasks): void {
  for (const { pages, hosts } of tasks) {
    const places = new Map<string, Map<string, number>>()
    for (const [, page] of pages.range(undefined, undefined, {})) {
      const of = places.get(page.host) ?? new Map<string, number>()
      const name = page.place === 'ready' || page.place === 'blocked' ? `${page.place} ${page.origin}` : page.place
      of.set(name, (of.get(name) ?? 0) + 1)
      places.set(page.host, of)
    }
    for (const [name, host] of hosts.range(undefined, undefined, {})) {
      const of = places.get(name)
      assert.equal(host.waiting, of?.get('wait') ?? 0, `${name}: waiting`)
      assert.equal(host.deep, of?.get('deep') ?? 0, `${name}: deep`)
      host.origins.forEach((origin, i) => {
        assert.equal(origin.queued, of?.get(`ready ${i}`) ?? 0, `${origin.origin}: queued`)
        assert.equal(origin.blocked, of?.get(`blocked ${i}`) ?? 0, `${origin.origin}: blocked`)
      })
    }
  }
}

/**
 * Of each source: links looked at = sum of the reasons, as many as it had (or a multiple of each: a source is looked at
 * again when the scope widens); those passed on = those that dedupe counted as repeats or let through.
 */
function auditLinks(records: Records): void {
  const looked = new Map<string, number>()
  const passed = new Map<string, number>()
  const add = (to: Map<string, number>, key: string, n: number) => to.set(key, (to.get(key) ?? 0) + n)
  for (const { key, value } of recordsOf(records, 'decisions')) {
    assert.equal(
      value.total,
      value.reasons.reduce((sum, { count }) => sum + count, 0),
      `${key}: ${value.processor}'s total is the sum of its counts`,
    )
    if (value.processor === 'canonicalize') {
      add(looked, key, value.total)
      for (const { code, count } of value.reasons) if (code === 'admitted') add(passed, key, count)
    } else if (value.processor === 'dedupe') add(passed, key, -value.total)
  }
  for (const { value } of recordsOf(records, 'unseen')) add(passed, value.source, -1)
  for (const [source, rest] of passed) assert.equal(rest, 0, `${source}: links passed on and not accounted for`)
  const had = new Map<string, number>()
  for (const { key, value } of recordsOf(records, 'discovered-urls')) add(had, key, value.linkCount)
  for (const [source, n] of had) {
    if (n > 0)
      assert.ok((looked.get(source) ?? 0) >= n, `${source}: ${looked.get(source) ?? 0} of ${n} links looked at`)
  }
}
