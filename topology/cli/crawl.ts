import { Command } from 'commander'
import { createSystemClock } from '../../connectors/clock/system.ts'
import { type CrawlReport, type EmbeddedCrawl, openEmbeddedCrawl } from '../embedded.ts'
import { usageError } from '../errors.ts'
import type { CrawlStatus } from '../status.ts'
import { onInterrupt } from './interrupt.ts'
import { addSettings, readSettings } from './options.ts'
import { count, createLiveLine, type Output, parkedLines, stateLines } from './output.ts'
import { askRunning, onceUnlocked } from './view.ts'

export function crawlCommand(output: Output): Command {
  const command = new Command('crawl')
    .description('Crawls from seeds until nothing is due. The same command goes on where it stopped.')
    .argument('[urls...]', 'seeds; none = go on with what the data directory holds')
    .option('--json', 'end with one JSON line: {crawl, pages, requests, states, parked, seconds}')
    .addHelpText(
      'after',
      `
Ctrl-C stops requests, lets those under way end and keeps everything; a second one leaves at once, which loses nothing
either. The crawl ends by itself when nothing is due within --patience-s, and prints what is parked and why.

Each option is also a variable (--max-pages: WEIR_MAX_PAGES) and a name in the settings file ("maxPages").

Examples:
  $ weir crawl https://example.org/ --contact you@example.org
  $ weir crawl http://127.0.0.1:8000/ --allow-private --delay-ms 0 --max-depth none
  $ weir crawl --data weir-data                      # go on
`,
    )
  addSettings(command, [
    'data',
    'crawl',
    'scope',
    'maxDepth',
    'maxPages',
    'maxPagesPerHost',
    'delayMs',
    'userAgent',
    'contact',
    'allowPrivate',
    'durationS',
    'patienceS',
    'requestTimeoutMs',
    'maxBodyBytes',
    'maxUrlLength',
    'maxInFlight',
    'recrawlIntervalS',
    'analytics',
  ])
  return command.action(async (urls: string[], options: { json?: boolean }) => {
    await crawl(urls, command, options.json === true, output)
  })
}

async function crawl(urls: readonly string[], command: Command, json: boolean, output: Output): Promise<void> {
  const settings = readSettings(command)
  if (settings.delayMs === 0 && !settings.allowPrivate) {
    throw usageError(
      '--delay-ms 0: only for your own servers; give --allow-private too, then public addresses keep a delay of 1 s',
    )
  }
  const clock = createSystemClock()
  const live = createLiveLine(process.stderr, () => clock.monotonicMs())
  const say = (text: string) => {
    live.clear()
    output.message(text)
  }
  let running: EmbeddedCrawl | undefined
  const interrupts = onInterrupt(() => {
    say('stopping: requests under way may end; Ctrl-C again leaves at once (nothing is lost)')
    running?.stop('interrupted')
  })
  let redraw: NodeJS.Timeout | undefined
  try {
    const crawl = await onceUnlocked(
      clock,
      () => openEmbeddedCrawl({ settings, seeds: urls, onNotice: say }),
      async () => (await askRunning(settings.data, 'status', '')) !== undefined,
    )
    running = crawl
    if (interrupts.asked()) crawl.stop('interrupted')
    redraw = setInterval(() => live.show(liveText(crawl.status())), 500)
    const report = await crawl.finished
    live.clear()
    if (json) output.data(JSON.stringify(toJson(report)))
    else for (const line of reportLines(report, clock.nowMs())) output.data(line)
    if (report.ended === 'interrupted') process.exitCode = 130
  } finally {
    clearInterval(redraw)
    interrupts.remove()
    live.clear()
  }
}

function liveText(s: CrawlStatus): string {
  return `${s.pagesPerSec.toFixed(1)} pages/s  ${count(s.pages, 'page')}  ${s.queued} queued  ${s.inFlight} in flight  ${count(s.hosts, 'host')}  ${count(s.errors, 'error')}`
}

function toJson(r: CrawlReport) {
  return {
    crawl: r.crawl,
    pages: r.pages,
    requests: r.requests,
    states: r.states,
    parked: r.parked.map(({ reason, count, next }) => ({
      reason,
      count,
      next: next === null ? null : new Date(next).toISOString(),
    })),
    seconds: r.seconds,
  }
}

function reportLines(r: CrawlReport, nowMs: number): string[] {
  const how = { done: 'done', interrupted: 'interrupted', duration: 'time is up' }[r.ended]
  const more = r.ended === 'done' ? '' : '; the same command goes on'
  return [
    ...stateLines(r.states),
    ...parkedLines(r.parked, nowMs),
    `${how}: ${count(r.pages, 'page')} with ${count(r.requests, 'request')} in ${r.seconds.toFixed(1)} s; data in ${r.data}${more}`,
  ]
}
