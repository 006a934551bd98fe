/**
 * A whole crawl from the command line, everything on, against the peers' synthetic web where Go and its source are there
 * (WEIR_BENCH_FARM names the folder), else against test/web's. Pages and violations are the server's count.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { BenchRow } from './run.ts'

export const method =
  'npx weir crawl of a web on loopback, no delay, robots, links, fingerprints, WARC, log and stores with fsync; CPU by getrusage of the crawler, start-up included; distinct pages by the server; one run for the figures, one more for the profile'

interface Site {
  readonly name: string
  readonly hosts: number
  readonly pages: number
  readonly bytes: number
  readonly bar: number
}
const sites: readonly Site[] = [
  { name: '30 KB', hosts: 200, pages: 50, bytes: 30_000, bar: 1.5 },
  { name: '185 KB', hosts: 100, pages: 30, bytes: 185_000, bar: 6 },
]
const root = resolve(import.meta.dirname, '../..')
const farmSource = process.env.WEIR_BENCH_FARM ?? resolve(root, '../shared/tools/peers/farm')

export async function bench(seed: number): Promise<BenchRow[]> {
  const rows: BenchRow[] = []
  const farm = buildFarm()
  if (farm === undefined) throw new Error(`measuring a crawl: no Go, or no farm at ${farmSource} (WEIR_BENCH_FARM)`)
  for (const site of sites) {
    rows.push(...(await measure(farm, site, seed)))
    rows.push(...(await profile(farm, site, seed)))
  }
  return rows
}

function buildFarm(): string | undefined {
  if (!existsSync(join(farmSource, 'main.go'))) return undefined
  const dir = join(tmpdir(), 'weir-bench-farm')
  cpSync(farmSource, dir, { recursive: true })
  const built = spawnSync('go', ['build', '-o', 'farm', '.'], { cwd: dir, stdio: 'inherit' })
  return built.status === 0 ? join(dir, 'farm') : undefined
}

interface Stats {
  uniqueAllowed: number
  /** Requests of pages, robots.txt not among them. */
  pages: number
  robotsFetches: number
  expectedPages: number
  robotsViolations: number
  maxInflightPerHost: number
  windowSeconds: number
}

async function measure(farm: string, site: Site, seed: number): Promise<BenchRow[]> {
  const { stats, usage, wallSec } = await crawl(farm, site, seed, [])
  const cpu = (usage.cpuSec * 1000) / stats.uniqueAllowed
  const perPage = stats.pages / stats.uniqueAllowed
  const row = (what: string, value: number, unit: string, more: Partial<BenchRow> = {}): BenchRow => ({
    what: `${site.name}: ${what}`,
    value,
    unit,
    ...more,
  })
  return [
    row('distinct pages', stats.uniqueAllowed, 'pages', {
      bar: `= ${stats.expectedPages}`,
      ok: stats.uniqueAllowed === stats.expectedPages,
    }),
    row('robots violations', stats.robotsViolations, 'requests', { bar: '= 0', ok: stats.robotsViolations === 0 }),
    row('most requests in flight on a host', stats.maxInflightPerHost, 'requests', {
      bar: '= 1',
      ok: stats.maxInflightPerHost === 1,
    }),
    row('page requests per distinct page', perPage, 'requests', { bar: '<= 1.03', ok: perPage <= 1.03 }),
    row('robots.txt requests per host', stats.robotsFetches / site.hosts, 'requests'),
    row('CPU per 1,000 distinct pages', cpu, 's', { bar: `<= ${site.bar}`, ok: cpu <= site.bar }),
    row('distinct pages per second, start-up included', stats.uniqueAllowed / wallSec, 'pages/s'),
    row('peak memory', usage.maxRssMib, 'MiB'),
  ]
}

/** Self time by stage, from a run with the sampling profiler on. */
async function profile(farm: string, site: Site, seed: number): Promise<BenchRow[]> {
  const dir = mkdtempSync(join(tmpdir(), 'weir-bench-profile-'))
  try {
    const { stats } = await crawl(farm, site, seed, ['--cpu-prof', `--cpu-prof-dir=${dir}`])
    const file = readdirSync(dir).find((name) => name.endsWith('.cpuprofile'))
    if (file === undefined) return []
    const times = stageTimes(JSON.parse(readFileSync(join(dir, file), 'utf8')) as CpuProfile)
    return [...times]
      .sort((a, b) => b[1] - a[1])
      .map(([stage, us]) => ({
        what: `${site.name}: of it ${stage}`,
        value: us / stats.uniqueAllowed,
        unit: 'µs/page',
      }))
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

interface CpuProfile {
  nodes: { id: number; callFrame: { functionName: string; url: string }; children?: number[] }[]
  samples: number[]
  timeDeltas: number[]
}

const stages: readonly (readonly [pattern: RegExp, stage: string])[] = [
  [/\/processors\/parse\//, 'parse'],
  [/\/processors\/canonicalize\//, 'canonicalize'],
  [/\/processors\/dedupe/, 'dedupe'],
  [/\/processors\/schedule\//, 'schedule'],
  [/\/processors\/fetch\//, 'fetch'],
  [/\/connectors\/(http|dns)\/|\/undici\//, 'http'],
  [/\/connectors\/archive\//, 'archive'],
  [/\/connectors\/log\//, 'log'],
  [/\/connectors\/store\/|\/lmdb\//, 'stores'],
  [/\/schemas\/|\/avsc\//, 'codec'],
  [/\/topology\/streams\//, 'streams'],
  [/\/topology\//, 'other of weir'],
]

/** A frame of Node or of V8 counts for the nearest caller that is a stage. */
function stageTimes(profile: CpuProfile): Map<string, number> {
  const byId = new Map(profile.nodes.map((node) => [node.id, node]))
  const stageOf = new Map<number, string>()
  const visit = (id: number, inherited: string): void => {
    const { callFrame, children } = byId.get(id)!
    let stage = stages.find(([pattern]) => pattern.test(callFrame.url))?.[1] ?? inherited
    if (callFrame.functionName === '(idle)') stage = 'idle'
    if (callFrame.functionName === '(garbage collector)') stage = 'garbage collection'
    stageOf.set(id, stage)
    for (const child of children ?? []) visit(child, stage)
  }
  visit(profile.nodes[0]!.id, 'node')
  const times = new Map<string, number>()
  profile.samples.forEach((id, i) => {
    const stage = stageOf.get(id) ?? 'node'
    if (stage !== 'idle') times.set(stage, (times.get(stage) ?? 0) + profile.timeDeltas[i]!)
  })
  return times
}

async function crawl(farm: string, site: Site, seed: number, nodeFlags: readonly string[]) {
  const dir = mkdtempSync(join(tmpdir(), 'weir-bench-crawl-'))
  const port = 8900
  const flags = { hosts: site.hosts, pages: site.pages, size: site.bytes, seed, port }
  const server = spawn(
    farm,
    Object.entries(flags).flatMap(([name, value]) => [`-${name}`, String(value)]),
    { stdio: 'ignore' },
  )
  try {
    const ask = async (path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).text()
    await until(() => ask('/__stats'))
    const seeds = (await ask('/__seeds')).trim().split('\n')
    const usageFile = join(dir, 'usage.json')
    const started = performance.now()
    const crawler = spawn(
      process.execPath,
      [
        ...nodeFlags,
        '--import',
        join(import.meta.dirname, 'usage.ts'),
        join(root, 'topology/cli/weir.ts'),
        'crawl',
        ...seeds,
        '--allow-private',
        '--delay-ms',
        '0',
        '--data',
        join(dir, 'data'),
        '--json',
      ],
      { stdio: ['ignore', 'ignore', 'inherit'], env: { ...process.env, WEIR_BENCH_USAGE: usageFile } },
    )
    await ended(crawler)
    const wallSec = (performance.now() - started) / 1000
    const stats = JSON.parse(await ask('/__stats')) as Stats
    const usage = JSON.parse(readFileSync(usageFile, 'utf8')) as { cpuSec: number; maxRssMib: number }
    return { stats, usage, wallSec }
  } finally {
    server.kill('SIGTERM')
    await ended(server).catch(() => {})
    rmSync(dir, { recursive: true, force: true })
  }
}

function ended(child: ChildProcess): Promise<void> {
  return new Promise((done, fail) => {
    if (child.exitCode !== null || child.signalCode !== null) return done()
    child.once('exit', (code) => (code === 0 ? done() : fail(new Error(`${child.spawnfile} ended with ${code}`))))
    child.once('error', fail)
  })
}

async function until(attempt: () => Promise<unknown>): Promise<void> {
  for (let left = 100; ; left--) {
    try {
      await attempt()
      return
    } catch (error) {
      if (left === 0) throw error
      await new Promise((go) => setTimeout(go, 50))
    }
  }
}
