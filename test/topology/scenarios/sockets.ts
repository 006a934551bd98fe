/** A whole crawl in this process on a temporary directory, against real servers on loopback whose log judges it. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { createSystemClock } from '../../../connectors/clock/system.ts'
import { openEmbeddedLog } from '../../../connectors/log/embedded/open.ts'
import { createLmdbStoreProvider } from '../../../connectors/store/lmdb.ts'
import { readCounts, type Tasks } from '../../../processors/schedule/read.ts'
import { openStores, scheduleStoreNames, scheduleStores } from '../../../processors/schedule/stores.ts'
import { type CrawlReport, type EmbeddedCrawl, openEmbeddedCrawl } from '../../../topology/embedded.ts'
import { defaultSettings, type Settings } from '../../../topology/settings.ts'
import { readOnlyStore } from '../../../topology/streams/store.ts'
import type { KeyValueStore } from '../../../topology/streams/types.ts'
import { type TopicName, topicName, topics } from '../../../topology/topics.ts'
import { audit, type Records, statesOf } from './audit.ts'

export interface Seen {
  /** As the Host header has it, without port. */
  readonly host: string
  readonly path: string
  readonly startMs: number
  /** Null while it is open. */
  endMs: number | null
  readonly headers: IncomingMessage['headers']
}
export interface Exchange {
  readonly host: string
  readonly path: string
  readonly nth: number
  readonly req: IncomingMessage
  readonly res: ServerResponse
  /** To write what no HTTP library would. */
  readonly socket: Socket
}
export interface Sites {
  readonly port: number
  readonly log: Seen[]
  readonly connections: ReadonlySet<Socket>
  url(host: string, path?: string): string
  /** Paths asked for, in order, without robots.txt. */
  paths(): string[]
}

export type Handler = (exchange: Exchange) => void

export function html(res: ServerResponse, body: string | Buffer, headers: { [name: string]: string } = {}): void {
  res.writeHead(200, { 'content-type': 'text/html', ...headers }).end(body)
}
export function links(...hrefs: readonly string[]): string {
  return `<!doctype html><title>A page</title>${hrefs.map((href) => `<a href="${href}">${href}</a>`).join('\n')}`
}

/** One server for all names under localhost; robots.txt is answered with 404 unless `handle` is to see it. */
export async function startSites(
  t: TestContext,
  handle: Handler,
  { robots = false }: { robots?: boolean } = {},
): Promise<Sites> {
  const log: Seen[] = []
  const connections = new Set<Socket>()
  const counts = new Map<string, number>()
  const server: Server = createServer((req, res) => {
    const host = (req.headers.host ?? '').replace(/:\d+$/, '')
    const path = req.url ?? '/'
    const seen: Seen = { host, path, startMs: performance.now(), endMs: null, headers: req.headers }
    log.push(seen)
    res.on('close', () => {
      seen.endMs = performance.now()
    })
    const key = `${host} ${path}`
    const nth = (counts.get(key) ?? 0) + 1
    counts.set(key, nth)
    if (path === '/robots.txt' && !robots) res.writeHead(404).end()
    else handle({ host, path, nth, req, res, socket: req.socket })
  })
  server.on('connection', (socket) => {
    connections.add(socket)
    socket.on('close', () => connections.delete(socket))
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  t.after(() => {
    server.close()
    server.closeAllConnections()
    for (const socket of connections) socket.destroy()
  })
  const { port } = server.address() as AddressInfo
  return {
    port,
    log,
    connections,
    url: (host, path = '/') => `http://${host}:${port}${path}`,
    paths: () => log.map(({ path }) => path).filter((path) => path !== '/robots.txt'),
  }
}

export function temporaryDirectory(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'weir-scenario-'))
  t.after(() => rmSync(dir, { recursive: true, force: true }))
  return join(dir, 'data')
}

export interface Crawled {
  readonly report: CrawlReport
  readonly notices: readonly string[]
  readonly records: Records
  /** URL → `state/reason`. */
  readonly states: ReadonlyMap<string, string>
}

/** No delay between requests unless asked for. */
export function settingsFor(data: string, changes: Partial<Settings> = {}): Settings {
  return { ...defaultSettings, data, delayMs: 0, patienceS: 0, allowPrivate: true, analytics: false, ...changes }
}

export async function open(
  settings: Settings,
  seeds: readonly string[],
): Promise<{ crawl: EmbeddedCrawl; notices: string[] }> {
  const notices: string[] = []
  const crawl = await openEmbeddedCrawl({ settings, seeds, onNotice: (text) => notices.push(text) })
  return { crawl, notices }
}

/** To its end; then everything that the data directory holds is audited. */
export async function crawlSites(settings: Settings, seeds: readonly string[]): Promise<Crawled> {
  const { crawl, notices } = await open(settings, seeds)
  const report = await crawl.finished
  assert.equal(report.ended, 'done')
  return { report, notices, ...(await readCrawl(settings.data, report)) }
}

/** What a crawl that has ended left in its directory, audited: counts, lists, links; nothing leased, nothing queued. */
export async function readCrawl(data: string, report: CrawlReport): Promise<Pick<Crawled, 'records' | 'states'>> {
  const partitions = 4
  const log = await openEmbeddedLog({ dir: join(data, 'log'), clock: createSystemClock() })
  type Raw = { partition: number; timestamp: number; key: Uint8Array; value: Uint8Array | null }
  const raw = new Map<TopicName, Raw[]>()
  try {
    for (const { name } of topics) {
      const list: Raw[] = []
      for (let p = 0; p < partitions; p++) {
        for (let next = 0; ; ) {
          const batch = await log.read(log.partition(topicName(report.crawl, name), p), next, 1 << 20, 'stable')
          if (batch === null) break
          for (let i = 0; i < batch.count; i++) {
            const value = batch.value(i)
            const key = Buffer.from(batch.key(i)!)
            list.push({
              partition: p,
              timestamp: batch.timestamp(i),
              key,
              value: value === null ? null : Buffer.from(value),
            })
          }
          next = batch.nextOffset
        }
      }
      raw.set(name, list)
    }
  } finally {
    await log.close()
  }
  const records: Records = { raw: (topic) => raw.get(topic) ?? [] }
  const provider = createLmdbStoreProvider({ root: join(data, 'stores') })
  const builders = new Map(scheduleStores().map((builder) => [builder.name, builder]))
  const opened = Array.from({ length: partitions }, (_, p) =>
    provider.open(`${report.crawl}-schedule`, `0_${p}`, [...scheduleStoreNames]),
  )
  try {
    const tasks: Tasks = opened.map((store) =>
      openStores((name) => readOnlyStore(builders.get(name)!, store) as unknown as KeyValueStore<never, never>),
    )
    audit(records, tasks)
    assert.deepEqual({ ...readCounts(tasks).states }, { ...report.states }, 'the report has the states of the end')
    if (report.ended === 'done') {
      const { leased, queued, visits } = readCounts(tasks)
      assert.deepEqual({ leased, queued, visits }, { leased: 0, queued: 0, visits: 0 })
    }
    return { records, states: statesOf(tasks) }
  } finally {
    for (const store of opened) await store.close()
  }
}

/** No request for a host begins while another is open there, nor sooner than the delay after its end. */
export function assertPolite(log: readonly Seen[], delayMs: number): void {
  const last = new Map<string, Seen>()
  for (const seen of log) {
    const before = last.get(seen.host)
    if (before !== undefined) {
      assert.ok(before.endMs !== null, `${before.path} was open when ${seen.path} came`)
      const gap = seen.startMs - before.endMs
      assert.ok(gap >= delayMs, `${seen.host}${seen.path} came ${gap.toFixed(1)} ms after ${before.path}`)
    }
    last.set(seen.host, seen)
  }
}
