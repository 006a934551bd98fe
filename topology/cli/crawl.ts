import { Command } from 'commander'
import { type CrawlReport, type CrawlStatus, openEmbeddedCrawl } from '../embedded.ts'
import { usageError } from '../errors.ts'
import { addSettings, readSettings } from './options.ts'
import { count, createLiveLine, inTime, type Output } from './output.ts'

export function crawlCommand(output: Output): Command {
  const command = new Command('crawl')
    .description('Crawls from seeds until nothing is due. The same command goes on where it stopped.')
    .argument('[urls...]', 'seeds; none = go on with what the data directory holds')
    .option('--json', 'end with one JSON line: {crawl, pages, requests, states, parked, seconds}')
    .addHelpText(
      'after',
      `
Ctrl-C stops requests, lets those under way end and keeps everything; a second one leaves at once, which loses nothing either.

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
  const crawl = await openEmbeddedCrawl({
    settings,
    seeds: urls,
    onNotice: (text) => {
      live.clear()
      output.message(text)
    },
  })
  const live = createLiveLine(process.stderr, () => Date.now())
  const redraw = setInterval(() => live.show(liveText(crawl.status())), 500)
  const interrupts = onInterrupt(() => {
    live.clear()
    output.message('stopping: requests under way may end; Ctrl-C again leaves at once (nothing is lost)')
    crawl.stop('interrupted')
  })
  try {
    const report = await crawl.finished
    live.clear()
    if (json) output.data(JSON.stringify(toJson(report)))
    else for (const line of reportLines(report, Date.now())) output.data(line)
    if (report.ended === 'interrupted') process.exitCode = 130
  } finally {
    clearInterval(redraw)
    interrupts.remove()
    live.clear()
  }
}

function onInterrupt(first: () => void): { remove(): void } {
  let asked = false
  const handler = () => {
    if (asked) process.exit(130)
    asked = true
    first()
  }
  process.on('SIGINT', handler)
  process.on('SIGTERM', handler)
  return {
    remove() {
      process.off('SIGINT', handler)
      process.off('SIGTERM', handler)
    },
  }
}

function liveText(s: CrawlStatus): string {
  return `${s.pagesPerSec.toFixed(1)} pages/s  ${s.pages} pages  ${s.queued} queued  ${s.inFlight} in flight  ${s.hosts} hosts  ${s.errors} errors`
}

function toJson(r: CrawlReport) {
  return {
    crawl: r.crawl,
    pages: r.pages,
    requests: r.requests,
    states: r.states,
    parked: r.parked.map((p) => ({ ...p, next: p.next === null ? null : new Date(p.next).toISOString() })),
    seconds: r.seconds,
  }
}

function reportLines(r: CrawlReport, nowMs: number): string[] {
  const lines = Object.entries(r.states)
    .filter(([, n]) => n > 0)
    .map(([state, n]) => `  ${state.padEnd(28)} ${n.toLocaleString('en-US').padStart(9)}`)
  const parked = r.parked.map(
    (p) =>
      `  ${count(p.count, 'URL')} parked: ${p.reason}, looked at again ${p.next === null ? 'when rules change' : inTime(p.next - nowMs)}`,
  )
  const how = { done: 'done', interrupted: 'interrupted', duration: 'time is up' }[r.ended]
  return [
    ...lines,
    ...parked,
    `${how}: ${count(r.pages, 'page')} with ${count(r.requests, 'request')} in ${r.seconds.toFixed(1)} s; data in ${r.data}`,
  ]
}
