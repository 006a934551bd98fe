import { join } from 'node:path'
import { createSystemClock } from '../../connectors/clock/system.ts'
import { openEmbeddedLog } from '../../connectors/log/embedded/open.ts'
import { LogError } from '../../connectors/log/errors.ts'
import { createLmdbStoreProvider } from '../../connectors/store/lmdb.ts'
import type { TaskStore } from '../../connectors/store/types.ts'
import { callControl } from '../control.ts'
import { crawlApplications } from '../crawl.ts'
import { openDataDirectory } from '../data-directory.ts'
import { notRun } from '../describe.ts'
import { dataDirectoryError } from '../errors.ts'
import { type CrawlView, type Inspection, inspectionCalls } from '../inspect.ts'
import type { Settings } from '../settings.ts'
import { readOnlyStore } from '../streams/store.ts'

type Answer<C extends keyof Inspection> = Awaited<ReturnType<Inspection[C]>>

/**
 * Asks the process that runs the crawl; when none does, opens the data directory, answers from it and lets it go.
 * Throws CommandError with exit code 3 when the directory cannot be read.
 */
export async function ask<C extends keyof Inspection>(
  settings: Settings,
  call: C,
  argument: string,
): Promise<Answer<C>> {
  const running = await callControl(join(settings.data, 'control.json'), call, argument)
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
}

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
  const opened = new Map<string, { store: TaskStore; builders: ReturnType<typeof buildersOf> }>()
  const buildersOf = (applicationId: string) => {
    const application = crawlApplications(crawl, processors).find((a) => a.applicationId === applicationId)!
    return application.topology.subTopologies().flatMap((s) => s.stores)
  }
  const view: CrawlView = {
    crawl,
    partitions,
    log,
    settings,
    nowMs: () => clock.nowMs(),
    store<K, V>(application: string, partition: number, name: string) {
      const applicationId = `${crawl}-${application}`
      const taskId = `0_${partition}`
      let task = opened.get(`${applicationId}/${taskId}`)
      if (task === undefined) {
        const builders = buildersOf(applicationId)
        task = {
          builders,
          store: provider.open(
            applicationId,
            taskId,
            builders.map((b) => b.name),
          ),
        }
        opened.set(`${applicationId}/${taskId}`, task)
      }
      const builder = task.builders.find((b) => b.name === name)
      return builder === undefined
        ? undefined
        : (readOnlyStore(builder, task.store) as ReturnType<typeof readOnlyStore<K, V>>)
    },
  }
  try {
    return await use(view)
  } finally {
    for (const { store } of opened.values()) await store.close()
    await log.close()
  }
}
