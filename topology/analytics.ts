import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createChdbAnalytics } from '../connectors/analytics/chdb/chdb.ts'
import { createClickHouseAnalytics } from '../connectors/analytics/clickhouse.ts'
import { AnalyticsError } from '../connectors/analytics/errors.ts'
import type { Analytics, AnalyticsAccess } from '../connectors/analytics/types.ts'
import type { Clock } from '../connectors/clock/types.ts'
import type { Faults } from '../connectors/faults/types.ts'
import type { Log, TopicSpec } from '../connectors/log/types.ts'
import { insertBatch, openGeneration, type RowsOf, type SinkTopic, sinkTables } from '../processors/sink/sink.ts'
import { sinkTopology } from './crawl.ts'
import { usageError } from './errors.ts'
import { createPlannedBatches } from './streams/planned-batches.ts'
import type { PlannedBatchesEvent } from './streams/planned-types.ts'
import { topicName } from './topics.ts'

export const schemaDir = new URL('../deploy/clickhouse/schema/', import.meta.url)
export const queriesDir = new URL('../deploy/clickhouse/queries/', import.meta.url)

/**
 * The ClickHouse server of the environment: CLICKHOUSE_URL, and CLICKHOUSE_USER, _PASSWORD, _DATABASE (default: the
 * crawl's name); each also as …_FILE, which names a file that holds it. Undefined: the embedded one. Throws a usage
 * error.
 */
export function clickHouseServer(
  environment: Readonly<{ [name: string]: string | undefined }>,
  crawl: string,
): AnalyticsAccess | undefined {
  const read = (name: string): string | undefined => {
    const file = environment[`${name}_FILE`]
    if (file === undefined || file === '') return environment[name] === '' ? undefined : environment[name]
    if (environment[name]) throw usageError(`${name} and ${name}_FILE are both set: give one of them`)
    try {
      return readFileSync(file, 'utf8').trim()
    } catch (error) {
      throw usageError(`reading ${name}_FILE: ${(error as Error).message}`)
    }
  }
  const url = read('CLICKHOUSE_URL')
  if (url === undefined) return undefined
  const parsed = URL.parse(url)
  if (parsed === null || !/^https?:$/.test(parsed.protocol)) {
    throw usageError(`CLICKHOUSE_URL: it must be an http or https URL, not "${url}"`)
  }
  return {
    url,
    username: read('CLICKHOUSE_USER') ?? 'default',
    password: read('CLICKHOUSE_PASSWORD') ?? '',
    database: read('CLICKHOUSE_DATABASE') ?? crawl,
  }
}

/** The server, or the embedded ClickHouse in `dir`. */
export function openAnalytics(crawl: string, dir: string, server: AnalyticsAccess | undefined): Analytics {
  if (server !== undefined) return createClickHouseAnalytics({ ...server, schemaDir })
  return createChdbAnalytics({ dir, database: crawl, schemaDir, newPassword: () => randomBytes(24).toString('hex') })
}

export interface SinkOptions {
  readonly crawl: string
  readonly log: Log
  readonly topics: readonly TopicSpec[]
  readonly clock: Clock
  readonly analytics: Analytics
  readonly faults?: Faults
  /** A sentence each. */
  readonly onNotice: (text: string) => void
}

export interface Sink {
  /** Records that are not in ClickHouse. */
  lag(): number
  /**
   * Waits for the sink to catch up, for as long as it gets on, and says what is left when it does not: that is done at
   * the next start.
   */
  drain(patienceMs: number): Promise<void>
  close(): Promise<void>
}

const instanceId = 'weir-0'
const closeWaitMs = 2_000

/** Starts writing what the log has into ClickHouse; whatever happens there, it stops nobody. */
export function startSink(options: SinkOptions): Sink {
  const { crawl, log, topics, clock, analytics, onNotice, faults } = options
  const applicationId = `${crawl}-sink`
  const tableOf = new Map(
    Object.entries(sinkTables).map(([topic, table]) => [topicName(crawl, topic as SinkTopic), table]),
  )
  const batches = createPlannedBatches<RowsOf>({
    log,
    clock,
    applicationId,
    instanceId,
    topology: sinkTopology(crawl),
    topics,
    deadLetterTopic: topicName(crawl, 'dead-letters'),
    receiver: {
      open: (known) => openGeneration(analytics, applicationId, known, () => clock.nowMs().toString(36)),
      prepare: (record) => ({ offset: record.offset, rows: tableOf.get(record.topic)!.rows(record) }),
      deliver: ({ topic, token, records }) =>
        insertBatch(
          analytics,
          tableOf.get(topic)!.table,
          records.map((r) => r.item),
          token,
        ),
      isFatal: (error) =>
        error instanceof AnalyticsError && (error.code === 'not-installed' || error.code === 'foreign'),
    },
    ...(faults === undefined ? {} : { faults }),
    onEvent: (event) => noticeEvent(event, onNotice),
  })
  batches.start()
  return {
    lag: () => batches.lag(),
    async drain(patienceMs) {
      const left = await batches.drain(patienceMs)
      if (left > 0 && !batches.hasFailed()) {
        onNotice(`${left} records are not in ClickHouse yet; the next start brings them there`)
      }
    },
    async close() {
      const closing = batches.close()
      let timer: { cancel(): void } | undefined
      const waited = new Promise<void>((resolve) => {
        timer = clock.setTimer(closeWaitMs, resolve)
      })
      await Promise.race([closing, waited])
      timer?.cancel()
      // Ends what still waits for an answer.
      await analytics.close()
      await closing
    },
  }
}

function noticeEvent(event: PlannedBatchesEvent, notice: (text: string) => void): void {
  switch (event.kind) {
    case 'unavailable':
      notice(`ClickHouse does not take rows now; the crawl goes on, they are kept: ${messageOf(event.error)}`)
      break
    case 'available':
      notice('ClickHouse takes rows again')
      break
    case 'dead-letter':
      notice(
        `a record of ${event.topic} (partition ${event.partition}, offset ${event.offset}) cannot be a row in ClickHouse and is in the dead letters: ${messageOf(event.error)}`,
      )
      break
    case 'failed':
      notice(`analytics are off, the crawl goes on (--no-analytics does so silently): ${messageOf(event.error)}`)
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message.split('\n', 1)[0]! : String(error)
}
