import { join } from 'node:path'
import { Command, InvalidArgumentError, Option } from 'commander'
import { createArchiveReader } from '../../connectors/archive/file.ts'
import { createSystemClock } from '../../connectors/clock/system.ts'
import type { Clock } from '../../connectors/clock/types.ts'
import { openEmbeddedLog } from '../../connectors/log/embedded/open.ts'
import { LogError } from '../../connectors/log/errors.ts'
import type { Log } from '../../connectors/log/types.ts'
import type { Extracted } from '../../processors/parse/extract.ts'
import { clickHouseServer, openAnalytics, startSink } from '../analytics.ts'
import { type DataDirectory, openDataDirectory } from '../data-directory.ts'
import { CommandError, dataDirectoryError } from '../errors.ts'
import { type ReplayProgress, type ReplayReport, replayParse } from '../replay.ts'
import { agentOf, type Settings } from '../settings.ts'
import { topicSpecs } from '../topics.ts'
import { onInterrupt } from './interrupt.ts'
import { addSettings, readSettings } from './options.ts'
import { count, createLiveLine, type Output } from './output.ts'
import { askRunning, onceUnlocked } from './view.ts'

interface ReplayFlags {
  url?: string
  host?: string
  limit?: number
  apply?: boolean
  json?: boolean
}

export function replayCommand(output: Output): Command {
  const parse = new Command('parse')
    .description("Parses the stored pages again, with the settings file's extract rules. Shows what would change.")
    .option('--url <prefix>', 'only pages whose key begins so')
    .addOption(new Option('--host <host>', 'only pages of this host').conflicts('url'))
    .option('--limit <n>', 'at most n pages', wholeNumber)
    .option('--apply', 'write the results to the topic parsed; without it nothing is changed')
    .option('--json', 'end with one JSON line: the report')
    .addHelpText(
      'after',
      `
No request is made: bodies come from the archive. Interrupted, the same command goes on with the pages that are left.

Examples:
  $ weir replay parse --data example --config weir.json
  $ weir replay parse --data example --config weir.json --apply
`,
    )
  addSettings(parse, ['data', 'crawl', 'userAgent', 'analytics'])
  parse.action((flags: ReplayFlags) => replay(readSettings(parse), flags, output))
  return new Command('replay').description('Works a crawl through again, from what is stored.').addCommand(parse)
}

async function replay(settings: Settings, flags: ReplayFlags, output: Output): Promise<void> {
  const clock = createSystemClock()
  const { token } = agentOf(settings)
  const live = createLiveLine(process.stderr, () => clock.monotonicMs(), 3000)
  const stopping = new AbortController()
  const interrupts = onInterrupt(() => {
    live.clear()
    output.message('stopping after this page; Ctrl-C again leaves at once (the same command goes on)')
    stopping.abort()
  })
  let shownMs = 0
  const closers: (() => unknown)[] = [() => interrupts.remove(), () => live.clear()]
  try {
    const directory = await onceUnlocked(
      clock,
      async () => openDirectory(settings),
      async () => (await askRunning(settings.data, 'status', '')) !== undefined,
    )
    closers.push(() => directory.release())
    const log = await openEmbeddedLog({ dir: directory.path('log'), clock }).catch((error: unknown) => {
      if (!(error instanceof LogError)) throw error
      throw dataDirectoryError(error.code, `opening the data directory ${directory.dir}: ${error.message}`)
    })
    closers.push(() => log.close())
    const archive = createArchiveReader(directory.path('archive'))
    closers.push(() => archive.close())
    const report = await replayParse({
      directory,
      log,
      archive,
      clock,
      rules: settings.extract,
      agentToken: token,
      apply: flags.apply === true,
      only: {
        ...(flags.host === undefined ? {} : { host: flags.host.toLowerCase().replace(/:\d+$/, '') }),
        ...(flags.url === undefined ? {} : { urlPrefix: flags.url }),
      },
      ...(flags.limit === undefined ? {} : { limit: flags.limit }),
      stopping: stopping.signal,
      onProgress: (progress) => showProgress(progress),
    })
    live.clear()
    if (report.applied && settings.analytics) await sinkUp(directory, log, clock, output)
    for (const { url, error } of report.missingExamples) output.message(`archive-missing: ${url}: ${error}`)
    if (flags.json === true) output.data(JSON.stringify(report))
    else for (const line of reportLines(report)) output.data(line)
    if (report.missing > 0) process.exitCode = 1
    if (report.ended === 'interrupted') process.exitCode = 130
  } finally {
    for (const close of closers.reverse()) await close()
  }

  function showProgress({ done, total, missing, pagesPerSec }: ReplayProgress): void {
    const nowMs = clock.monotonicMs()
    if (nowMs - shownMs < 250) return
    shownMs = nowMs
    const etaS = pagesPerSec > 0 ? Math.ceil((total - done) / pagesPerSec) : 0
    const lost = missing === 0 ? '' : `  ${missing} missing in the archive`
    live.show(
      `${pagesPerSec.toFixed(1)} pages/s  ${done.toLocaleString('en-US')} of ${count(total, 'page')}  ETA ${etaS} s${lost}`,
    )
  }
}

/** Brings what was written into ClickHouse, so that SQL has it when the command is done. */
async function sinkUp(directory: DataDirectory, log: Log, clock: Clock, output: Output): Promise<void> {
  const { crawl, partitions } = directory.crawl
  const topics = topicSpecs(crawl, partitions)
  await log.ensure(topics)
  const analytics = openAnalytics(crawl, join(directory.dir, 'clickhouse'), clickHouseServer(process.env, crawl))
  const sink = startSink({ crawl, log, topics, clock, analytics, onNotice: (text) => output.message(text) })
  try {
    await sink.drain(sinkPatienceMs)
  } finally {
    await sink.close()
  }
}

/** Given up only when ClickHouse has taken nothing for this long. */
const sinkPatienceMs = 15_000

function openDirectory(settings: Settings): DataDirectory {
  try {
    return openDataDirectory({ dir: settings.data, crawl: settings.crawl ?? undefined })
  } catch (error) {
    if (!(error instanceof CommandError) || error.code !== 'data-locked') throw error
    throw dataDirectoryError(
      error.code,
      `${error.message}; a replay needs it alone: stop the crawl first (Ctrl-C, everything is kept), and go on with it after`,
      { cause: error },
    )
  }
}

function wholeNumber(text: string): number {
  if (!/^[1-9]\d{0,14}$/.test(text)) throw new InvalidArgumentError('It must be a whole number of at least 1.')
  return Number(text)
}

function reportLines(r: ReplayReport): string[] {
  const notes = [
    ...(r.alreadyDone === 0
      ? []
      : [`${count(r.alreadyDone, 'page')} up to date with version ${r.parseVersion} already`]),
    ...(r.skipped === 0 ? [] : [`${count(r.skipped, 'page')} of a type that is not read`]),
    ...(r.parseFailed === 0 ? [] : [`${count(r.parseFailed, 'page')} could not be parsed (see weir explain)`]),
    ...(r.extractFailed === 0
      ? []
      : [`${count(r.extractFailed, 'page')} without fields: extract-failed (see weir explain)`]),
    ...(r.missing === 0
      ? []
      : [`${count(r.missing, 'page')} missing in the archive; nothing was lost, what parsed says of them stays`]),
  ]
  const how = r.ended === 'done' ? 'done' : 'interrupted'
  const more = r.ended === 'done' ? '' : '; the same command goes on'
  const result = r.applied
    ? `${how}: ${count(r.written, 'page')} of ${r.pages.toLocaleString('en-US')} parsed again as version ${r.parseVersion} in ${r.seconds.toFixed(1)} s, without a request${more}`
    : `${count(r.pages, 'page')} would be parsed again as version ${r.parseVersion}; nothing was changed, --apply writes`
  return [...r.sample.flatMap(sampleLines), ...notes.map((note) => `  ${note}`), result]
}

function sampleLines({ url, before, after, alsoChanged }: ReplayReport['sample'][number]): string[] {
  const fields = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after)])].sort()
  return [
    url,
    ...fields.map((field) => `  ${field}: ${shown(before, field)} -> ${shown(after, field)}`),
    ...(fields.length === 0 ? ['  no fields, before and after'] : []),
    ...(alsoChanged.length === 0 ? [] : [`  also changed: ${alsoChanged.join(', ')}`]),
  ]
}

function shown(extracted: Extracted | null, field: string): string {
  const values = extracted?.[field]
  if (values === undefined) return '(none)'
  const some = values.slice(0, 3).map((value) => JSON.stringify(value.length > 80 ? `${value.slice(0, 79)}…` : value))
  return values.length > 3 ? `${some.join(', ')} and ${values.length - 3} more` : some.join(', ')
}
