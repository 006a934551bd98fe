import { rulesStore } from '../processors/canonicalize/rules-store.ts'
import { seenStore } from '../processors/dedupe.ts'
import { hostScheduledPartitioner, visitKeySerde } from '../processors/schedule/gate.ts'
import { scheduleStores } from '../processors/schedule/stores.ts'
import type { SinkTopic } from '../processors/sink/sink.ts'
import { siteOfKey } from '../processors/site.ts'
import { stringSerde, topicSerde } from '../schemas/codec.ts'
import { partitionOf } from '../schemas/hash.ts'
import type {
  Candidate,
  Control,
  Decision,
  DiscoveredUrls,
  Fetched,
  HostPolicy,
  PageState,
  Parsed,
  Visit,
} from '../schemas/types.ts'
import type { ApplicationOptions } from './streams/application.ts'
import { Topology } from './streams/topology.ts'
import type { ProcessorSupplier, StreamPartitioner } from './streams/types.ts'
import { type TopicName, topicName } from './topics.ts'

/** What runs between the topics: one supplier a processor, with its options inside. */
export interface CrawlProcessors {
  readonly canonicalize: ProcessorSupplier<string, DiscoveredUrls | Control, string, Candidate | Decision | Control>
  readonly dedupe: ProcessorSupplier<string, Candidate, string, Candidate | Decision>
  readonly schedule: ProcessorSupplier<string, Candidate | Fetched, string, Visit | PageState | HostPolicy | Decision>
  readonly fetch: ProcessorSupplier<string, Visit, string, DiscoveredUrls | Parsed | Decision | Fetched>
}

/** THE wiring. Read from top to bottom it is the crawl: each application's nodes, then its edges. */
export function crawlApplications(crawl: string, processors: CrawlProcessors): ApplicationOptions[] {
  const topic = (name: TopicName) => topicName(crawl, name)
  const source = <V>(name: TopicName) => ({
    topics: [topic(name)],
    keySerde: stringSerde,
    valueSerde: topicSerde<V>(name),
  })
  const sink = <V>(name: TopicName, partitioner: StreamPartitioner<string, V>) => ({
    topic: topic(name),
    keySerde: stringSerde,
    valueSerde: topicSerde<V>(name),
    partitioner,
  })

  const canonicalize = new Topology('canonicalize')
    .addSource('discovered-urls', source<DiscoveredUrls>('discovered-urls'))
    .addSource('rules', source<Control>('controls'))
    .addProcessor('canonicalize', processors.canonicalize, ['discovered-urls', 'rules'])
    .addSink('canonicalized', sink<Candidate>('canonicalized', byKey), ['canonicalize'])
    .addSink('controls', sink<Control>('controls', toAll), ['canonicalize'])
    .addSink('decisions', sink<Decision>('decisions', bySite), ['canonicalize'])
    .addStateStore(rulesStore, ['canonicalize'])

  const dedupe = new Topology('dedupe')
    .addSource('canonicalized', source<Candidate>('canonicalized'))
    .addProcessor('dedupe', processors.dedupe, ['canonicalized'])
    .addSink('unseen', sink<Candidate>('unseen', bySite), ['dedupe'])
    .addSink('decisions', sink<Decision>('decisions', bySite), ['dedupe'])
    .addStateStore(seenStore, ['dedupe'])

  const schedule = new Topology('schedule')
    .addSource('unseen', source<Candidate>('unseen'))
    .addSource('fetched', source<Fetched>('fetched'))
    .addProcessor('schedule', processors.schedule, ['unseen', 'fetched'])
    .addSink(
      'host-scheduled',
      { ...sink<Visit>('host-scheduled', hostScheduledPartitioner), keySerde: visitKeySerde },
      ['schedule'],
    )
    .addSink('page-states', sink<PageState>('page-states', bySite), ['schedule'])
    .addSink('host-policies', sink<HostPolicy>('host-policies', bySite), ['schedule'])
    .addSink('decisions', sink<Decision>('decisions', bySite), ['schedule'])
  for (const store of scheduleStores()) schedule.addStateStore(store, ['schedule'])

  const fetch = new Topology('fetch')
    .addSource('host-scheduled', source<Visit>('host-scheduled'))
    .addProcessor('fetch', processors.fetch, ['host-scheduled'])
    .addSink('discovered-urls', sink<DiscoveredUrls>('discovered-urls', byKey), ['fetch'])
    .addSink('parsed', sink<Parsed>('parsed', bySite), ['fetch'])
    .addSink('decisions', sink<Decision>('decisions', bySite), ['fetch'])
    .addSink('fetched', sink<Fetched>('fetched', bySite), ['fetch'])

  return [
    { applicationId: `${crawl}-canonicalize`, topology: canonicalize, guarantee: 'exactly_once_v2' },
    { applicationId: `${crawl}-dedupe`, topology: dedupe, guarantee: 'exactly_once_v2' },
    { applicationId: `${crawl}-schedule`, topology: schedule, guarantee: 'exactly_once_v2' },
    { applicationId: `${crawl}-fetch`, topology: fetch, guarantee: 'ack_on_take' },
  ]
}

/**
 * Not run by a stream thread, since it waits on a network: `streams/planned-batches.ts` reads what its sources say, and
 * the processor (`processors/sink/`) is ClickHouse's side. Application id: `<crawl>-sink`.
 */
export function sinkTopology(crawl: string): Topology {
  const topology = new Topology('sink')
  const topics: readonly SinkTopic[] = ['fetched', 'parsed', 'page-states', 'host-policies', 'decisions']
  for (const name of topics) {
    topology.addSource(name, { topics: [topicName(crawl, name)], keySerde: stringSerde, valueSerde: topicSerde(name) })
  }
  return topology.addProcessor('sink', notRun, topics)
}

/** Stands for a processor where a topology is only looked at. */
export const notRun: ProcessorSupplier<string, never, string, never> = () => {
  throw new Error('a described topology is not run')
}

function byKey(key: string, _value: unknown, partitions: number): number {
  return partitionOf(key, partitions)
}

/** A domain's hosts, budgets and outcomes meet in one task. */
function bySite(key: string, value: object | null, partitions: number): number {
  const site = value !== null && 'site' in value && typeof value.site === 'string' ? value.site : siteOfKey(key)
  return partitionOf(site, partitions)
}

/** Every task of every application has the rules. */
function toAll(_key: string, _value: unknown, partitions: number): readonly number[] {
  return Array.from({ length: partitions }, (_, i) => i)
}
