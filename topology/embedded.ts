import { join } from 'node:path'
import { createFileArchive } from '../connectors/archive/file.ts'
import { createSystemClock } from '../connectors/clock/system.ts'
import type { Clock } from '../connectors/clock/types.ts'
import { createSystemResolver } from '../connectors/dns/system.ts'
import { type Faults, noFaults } from '../connectors/faults/types.ts'
import { privateOnly } from '../connectors/http/private-only.ts'
import { createUndiciClient } from '../connectors/http/undici.ts'
import { type EmbeddedLog, openEmbeddedLog } from '../connectors/log/embedded/open.ts'
import { LogError } from '../connectors/log/errors.ts'
import { createLmdbStoreProvider } from '../connectors/store/lmdb.ts'
import { rulesHash } from '../processors/parse/extract-rules.ts'
import type { PageBudget } from '../processors/schedule/options.ts'
import { createPageBudget, isIdle, readCounts, type Tasks } from '../processors/schedule/read.ts'
import { clickHouseServer, openAnalytics, startSink } from './analytics.ts'
import { startControlServer } from './control.ts'
import { crawlApplications } from './crawl.ts'
import { createCrawlProcessors } from './crawl-processors.ts'
import { type DataDirectory, openDataDirectory } from './data-directory.ts'
import { CommandError, dataDirectoryError, usageError } from './errors.ts'
import { type CrawlView, inspectionCalls, type ParkedUrls, parkedWithExample, scheduleTasks } from './inspect.ts'
import { messageOf, noticeEvent } from './notices.ts'
import { isPublicHost, readSeeds, seedHosts, seedRecords, writeSeeds } from './seeds.ts'
import { agentOf, type Settings } from './settings.ts'
import { type CrawlStatus, createStatus } from './status.ts'
import { createStreams, type Streams } from './streams/runtime.ts'
import { topicName, topicSpecs } from './topics.ts'

export interface EmbeddedCrawlOptions {
  readonly settings: Settings
  /** URLs; none = go on with what the data directory holds. */
  readonly seeds: readonly string[]
  /** What a person should know while it runs, a sentence each. */
  readonly onNotice?: (text: string) => void
  readonly clock?: Clock
  readonly faults?: Faults
}

export interface CrawlReport {
  readonly crawl: string
  readonly data: string
  readonly ended: 'done' | 'interrupted' | 'duration'
  readonly pages: number
  readonly requests: number
  readonly states: { readonly [stateAndReason: string]: number }
  readonly parked: readonly ParkedUrls[]
  readonly seconds: number
}

export interface EmbeddedCrawl {
  status(): CrawlStatus
  /** Starts no further request, lets those under way end, keeps everything. */
  stop(why: 'interrupted' | 'duration'): void
  /** Resolves when the crawl has ended and all is closed; rejects when it could not go on. */
  readonly finished: Promise<CrawlReport>
}

/** Longer than any request may take. */
const drainTimeoutMs = 90_000
/** What our end of a response may come before the server's own, on a machine that is busy. */
const gapMarginMs = 10
/** How long the end of a crawl waits for a ClickHouse that takes nothing. */
const sinkPatienceMs = 15_000
const interruptedSinkPatienceMs = 2_000
const watchIntervalMs = 50
const partitions = 4

/**
 * A whole crawl in this process on an embedded log: opens the data directory, starts all applications and watches for
 * the end. Throws CommandError, with nothing changed, when it cannot start.
 */
export async function openEmbeddedCrawl(options: EmbeddedCrawlOptions): Promise<EmbeddedCrawl> {
  const { settings, clock = createSystemClock() } = options
  const seeds = readSeeds(options.seeds, settings.maxUrlLength)
  const agent = agentOf(settings)
  if (!agent.hasContact) refusePublic(seeds.map(({ host }) => host))
  if (settings.crawl !== null && !/^\w[\w.-]{0,99}$/.test(settings.crawl)) {
    throw usageError(
      `--crawl: it names topics and files: up to 100 letters, digits, ".", "_" and "-", not "${settings.crawl}"`,
    )
  }
  if (!settings.allowPrivate) refusePrivate(seeds.map(({ host }) => host))
  const startedAtMs = clock.nowMs()
  const records = seeds.length === 0 ? undefined : seedRecords(seeds, settings, startedAtMs)
  const directory = openDataDirectory({
    dir: settings.data,
    crawl: settings.crawl ?? undefined,
    ...(seeds.length === 0
      ? {}
      : { create: { crawl: settings.crawl ?? 'weir', partitions, createdAtMs: startedAtMs } }),
  })
  const closers: (() => unknown)[] = [() => directory.release()]
  try {
    return await start(directory, closers)
  } catch (error) {
    for (const close of closers.reverse()) await close()
    throw error
  }

  async function start(directory: DataDirectory, closers: (() => unknown)[]): Promise<EmbeddedCrawl> {
    const { crawl } = directory.crawl
    const notice = options.onNotice ?? (() => {})
    const faults = options.faults ?? noFaults
    const log = await openJournal(directory, clock, faults)
    closers.push(() => log.close())
    if (log.recovery.droppedBytes > 0) {
      notice(`cut off ${log.recovery.droppedBytes} bytes of an unfinished commit at the end of the journal`)
    }
    const topics = topicSpecs(crawl, directory.crawl.partitions)
    await log.ensure(topics)
    if (!agent.hasContact) refusePublic(await seedHosts(log, crawl))
    if (!settings.allowPrivate) refusePrivate(await seedHosts(log, crawl))
    const archive = createFileArchive({
      dir: directory.path('archive'),
      crawl,
      clock,
      software: settings.userAgent,
      ...(settings.contact === null ? {} : { operator: settings.contact }),
      onEvent(event) {
        if (event.kind === 'tail-cut') notice(`cut off an unfinished record at the end of ${event.file}`)
      },
    })
    closers.push(() => archive.close())
    const http = createUndiciClient({ clock, allowPrivate: settings.allowPrivate, faults })
    closers.push(() => http.close())
    const resolver = createSystemResolver({ clock })
    closers.push(() => resolver.close())

    const stopping = new AbortController()
    const swept = new Set<number>()
    let streams: Streams | undefined
    const view: CrawlView = {
      crawl,
      partitions: directory.crawl.partitions,
      log,
      nowMs: () => clock.nowMs(),
      settings,
      store: (application, partition, name) => streams?.getStore(`${crawl}-${application}`, partition, name),
    }
    const tasks = () => scheduleTasks(view)
    const processors = createCrawlProcessors({
      crawl,
      settings,
      agent,
      http: agent.hasContact ? http : privateOnly(http, clock),
      resolver,
      archive,
      faults,
      parseVersion: directory.useRules(rulesHash(settings.extract)),
      gapMarginMs,
      leasesVoidBeforeMs: startedAtMs,
      stopping: stopping.signal,
      pageBudget: budgetUntil(stopping.signal, settings.maxPages, tasks),
      onSwept: (partition) => void swept.add(partition),
      onWidened: (host, why) => notice(`${host} joins the scope: ${why}`),
    })
    const applications = crawlApplications(crawl, processors).map((application) =>
      application.guarantee === 'ack_on_take'
        ? { ...application, maxInFlight: settings.maxInFlight, resume: 'end' as const }
        : application,
    )
    streams = createStreams({
      log,
      stores: createLmdbStoreProvider({ root: directory.path('stores'), clock }),
      clock,
      faults,
      topics,
      applications,
      config: { instanceId: 'weir-0', deadLetterTopic: topicName(crawl, 'dead-letters') },
      onEvent: (event) => noticeEvent(event, notice),
    })
    if (records !== undefined) await writeSeeds(log, crawl, directory.crawl.partitions, records, startedAtMs)
    await streams.start()
    const running = streams
    closers.push(() => running.close({ drainTimeoutMs: 0 }))
    const server = clickHouseServer(process.env, crawl)
    const analytics = settings.analytics ? openAnalytics(crawl, join(directory.dir, 'clickhouse'), server) : undefined
    const sink = analytics && startSink({ crawl, log, topics, clock, analytics, faults, onNotice: notice })
    if (sink !== undefined) closers.push(() => sink.close())
    const status = createStatus({ crawl, clock, streams: running, tasks, sinkLag: () => sink?.lag() ?? 0 })
    const control = await startControlServer(directory.path('control.json'), {
      ...inspectionCalls(view),
      status: async () => ({ ...status(), parked: parkedWithExample(tasks()) }),
      analytics: async () => {
        if (analytics !== undefined) return analytics.access()
        throw new CommandError('no-analytics', 1, 'asking ClickHouse: this crawl runs with --no-analytics')
      },
    })
    closers.push(() => control.close())

    let ended: CrawlReport['ended'] | undefined
    let stop: (why: 'interrupted' | 'duration') => void = () => {}
    const asked = new Promise<void>((resolve) => {
      stop = (why) => {
        ended ??= why
        resolve()
      }
    })
    const isDone = () =>
      swept.size === directory.crawl.partitions &&
      running.settled() &&
      isIdle(tasks(), clock.nowMs(), settings.patienceS * 1000)
    const finished = watch()
    // Whoever asks for `finished` later still gets the error.
    finished.catch(() => {})
    return { status, stop, finished }

    async function watch(): Promise<CrawlReport> {
      const timer =
        settings.durationS === null ? undefined : clock.setTimer(settings.durationS * 1000, () => stop('duration'))
      try {
        const error = await Promise.race([whenDone(), asked, running.failed.then((error) => ({ error }))])
        if (error !== undefined) throw stopped(error.error)
        ended ??= 'done'
        stopping.abort()
        await drained()
        await sink?.drain(ended === 'done' ? sinkPatienceMs : interruptedSinkPatienceMs)
        const counts = readCounts(tasks())
        const report: CrawlReport = {
          crawl,
          data: settings.data,
          ended,
          pages: counts.fetched,
          requests: counts.requests,
          states: counts.states,
          parked: parkedWithExample(tasks()),
          seconds: (clock.nowMs() - startedAtMs) / 1000,
        }
        return report
      } finally {
        timer?.cancel()
        for (const close of closers.splice(0).reverse()) await close()
      }
    }

    async function whenDone(): Promise<undefined> {
      while (ended === undefined && !isDone()) await sleep()
    }

    /** What is under way has ended, and schedule knows of it. */
    async function drained(): Promise<void> {
      const untilMs = clock.monotonicMs() + drainTimeoutMs
      while (clock.monotonicMs() < untilMs && running.state() === 'RUNNING' && !running.settled()) await sleep()
    }

    function sleep(): Promise<void> {
      return new Promise((resolve) => {
        clock.setTimer(watchIntervalMs, resolve)
      })
    }
  }
}

async function openJournal(directory: DataDirectory, clock: Clock, faults: Faults): Promise<EmbeddedLog> {
  try {
    return await openEmbeddedLog({ dir: directory.path('log'), clock, faults })
  } catch (error) {
    if (error instanceof LogError) {
      throw dataDirectoryError(error.code, `opening the data directory ${directory.dir}: ${error.message}`, {
        cause: error,
      })
    }
    throw error
  }
}

function refusePublic(hosts: readonly string[]): void {
  const stranger = hosts.find(isPublicHost)
  if (stranger === undefined) return
  throw usageError(
    `starting a crawl of ${stranger}: the public web is crawled only with a contact that its owners can reach; give --contact you@example.org (or a URL), or set WEIR_CONTACT`,
  )
}

function refusePrivate(hosts: readonly string[]): void {
  const own = hosts.find((host) => !isPublicHost(host))
  if (own === undefined) return
  throw usageError(
    `starting a crawl of ${own}: loopback, private and other special-purpose addresses are connected to only with --allow-private`,
  )
}

/** The crawl's page budget; once it is to stop, no visit is issued any more. */
function budgetUntil(stopping: AbortSignal, maxPages: number | null, tasks: () => Tasks): PageBudget {
  const unlimited: PageBudget = { note() {}, leasable: () => Number.POSITIVE_INFINITY, exhausted: () => false }
  const budget = maxPages === null ? unlimited : createPageBudget(maxPages, tasks)
  return {
    note: (partition, used) => budget.note(partition, used),
    leasable: () => (stopping.aborted ? 0 : budget.leasable()),
    exhausted: () => budget.exhausted(),
  }
}

function stopped(error: unknown): Error {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'stopped'
  return new CommandError(code, 1, `crawling: ${messageOf(error)}; what is committed is kept`, { cause: error })
}
