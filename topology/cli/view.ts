import { join } from 'node:path'
import { createSystemClock } from '../../connectors/clock/system.ts'
import type { Clock } from '../../connectors/clock/types.ts'
import { openEmbeddedLog } from '../../connectors/log/embedded/open.ts'
import { LogError } from '../../connectors/log/errors.ts'
import { createLmdbStoreProvider } from '../../connectors/store/lmdb.ts'
import type { TaskStore } from '../../connectors/store/types.ts'
import { callControl } from '../control.ts'
import { crawlApplications, notRun } from '../crawl.ts'
import { openDataDirectory } from '../data-directory.ts'
import { CommandError, dataDirectoryError } from '../errors.ts'
import { type CrawlView, type Inspection, inspectionCalls } from '../inspect.ts'
import type { Settings } from '../settings.ts'
import { changelogSpecs, planTasks } from '../streams/application.ts'
import { defaultConfig } from '../streams/config.ts'
import { restore } from '../streams/restore.ts'
import { runAsync } from '../streams/steps.ts'
import { changelogTopic, readOnlyStore } from '../streams/store.ts'
import type { StoreBuilder } from '../streams/types.ts'
import { topicSpecs } from '../topics.ts'

type Answer<C extends keyof Inspection> = Awaited<ReturnType<Inspection[C]>>

/**
 * Asks the process that runs the crawl; when none does, opens the data directory, answers from it and lets it go.
 * Throws CommandError with exit code 3 when the directory cannot be read; nothing is made where there is none.
 */
export async function ask<C extends keyof Inspection>(
  settings: Settings,
  call: C,
  argument: string,
): Promise<Answer<C>> {
  return onceUnlocked(createSystemClock(), async (): Promise<Answer<C>> => {
    const running = await askRunning(settings.data, call, argument)
    if (running !== undefined) return running.value as Answer<C>
    const directory = openDataDirectory({ dir: settings.data, crawl: settings.crawl ?? undefined })
    try {
      return await onDisk(directory.dir, directory.crawl, settings, (view) => {
        const answer = inspectionCalls(view)[call] as (argument: string) => Promise<Answer<C>>
        return answer(argument)
      })
    } finally {
      directory.release()
    }
  })
}

/** Undefined when no process runs the crawl. */
export function askRunning(
  data: string,
  call: keyof Inspection,
  argument: string,
): Promise<{ value: unknown } | undefined> {
  return callControl(join(data, 'control.json'), call, argument)
}

/**
 * Whoever has a directory locked may have it for a moment only: a `status` that reads it, a crawl that is about to
 * answer for it. Tries again for a few seconds, unless it `isHopeless`.
 */
export async function onceUnlocked<T>(
  clock: Clock,
  open: () => Promise<T>,
  isHopeless: () => Promise<boolean> = async () => false,
): Promise<T> {
  const untilMs = clock.monotonicMs() + lockPatienceMs
  for (;;) {
    try {
      return await open()
    } catch (error) {
      const isLocked = error instanceof CommandError && error.code === 'data-locked'
      if (!isLocked || clock.monotonicMs() >= untilMs || (await isHopeless())) throw error
      await new Promise<void>((resolve) => void clock.setTimer(lockRetryMs, resolve))
    }
  }
}

const lockPatienceMs = 5000
const lockRetryMs = 50

async function onDisk<T>(
  dir: string,
  { crawl, partitions }: { crawl: string; partitions: number },
  settings: Settings,
  use: (view: CrawlView) => Promise<T>,
): Promise<T> {
  const clock = createSystemClock()
  const log = await openEmbeddedLog({ dir: join(dir, 'log'), clock }).catch((error: unknown) => {
    if (error instanceof LogError)
      throw dataDirectoryError(error.code, `opening the data directory ${dir}: ${error.message}`)
    throw error
  })
  const provider = createLmdbStoreProvider({ root: join(dir, 'stores') })
  const processors = { canonicalize: notRun, dedupe: notRun, schedule: notRun, fetch: notRun }
  const applications = crawlApplications(crawl, processors)
  const catalogue = new Map(topicSpecs(crawl, partitions).map((t) => [t.name, t]))
  const opened = new Map<string, OpenTask>()
  const view: CrawlView = {
    crawl,
    partitions,
    log,
    settings,
    nowMs: () => clock.nowMs(),
    store<K, V>(application: string, partition: number, name: string) {
      const task = opened.get(`${crawl}-${application}/${partition}`)
      const builder = task?.builders.find((b) => b.name === name)
      if (task === undefined || builder === undefined) return undefined
      return readOnlyStore(builder, task.store) as ReturnType<typeof readOnlyStore<K, V>>
    },
  }
  try {
    for (const application of ['canonicalize', 'schedule']) await openTasks(application)
    return await use(view)
  } finally {
    for (const { store } of opened.values()) await store.close()
    await log.close()
  }

  /** Every task of an application, brought up to what the log has committed: a killed process may have been ahead. */
  async function openTasks(name: string): Promise<void> {
    const applicationId = `${crawl}-${name}`
    const application = applications.find((a) => a.applicationId === applicationId)!
    const tasks = planTasks(application, catalogue)
    const specs = changelogSpecs(application, tasks, defaultConfig.changelogMaxRecordBytes)
    const topicIds = new Map((await log.ensure(specs)).map(({ name, id }) => [name, id]))
    for (const { id, partition, subTopology } of tasks) {
      const builders = subTopology.stores
      const names = builders.map((b) => b.name)
      const store = provider.open(applicationId, id, names)
      opened.set(`${applicationId}/${partition}`, { builders, store })
      const changelogs = names.map((store) => {
        const topic = changelogTopic(applicationId, store)
        return { store, partition: log.partition(topic, partition), topicId: topicIds.get(topic)! }
      })
      await runAsync(restore(log, store, changelogs, defaultConfig.restoreBatchBytes))
    }
  }
}

interface OpenTask {
  readonly builders: readonly StoreBuilder<unknown, unknown>[]
  readonly store: TaskStore
}
