/**
 * A whole crawl from the command line, everything on, on the peers' synthetic web where Go and its source are there, else
 * on test/web's; wget beside it where it is installed. Pages and violations are the server's count.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { BenchRow } from './run.ts'
import { findFarm, type Site, startOwnWeb, type Web, type WebStats } from './webs.ts'

export const method =
  'weir crawl of a web on loopback, no delay, everything on (robots, links, fingerprints, WARC, log and stores with fsync, ClickHouse); CPU by getrusage of the crawler, start-up included, without ClickHouse; pages by the server; one run for the figures, one more for the profile'

const sites: readonly Site[] = [
  { name: '30 KB', hosts: 200, pages: 50, bytes: 30_000, bar: 1.5 },
  { name: '185 KB', hosts: 100, pages: 30, bytes: 185_000, bar: 6 },
]
const root = resolve(import.meta.dirname, '../..')

export async function bench(seed: number): Promise<BenchRow[]> {
  const start = findFarm() ?? startOwnWeb
  const rows: BenchRow[] = []
  for (const site of sites) {
    const web = () => start(site, seed)
    rows.push(...(await measure(await web(), site)), ...(await measurePeer(await web(), site)))
    rows.push(...(await profile(await web(), site)))
  }
  return rows
}

async function measure(web: Web, site: Site): Promise<BenchRow[]> {
  const { stats, usage, wallSec } = await crawl(web, [])
  const cpu = (usage.cpuSec * 1000) / stats.distinctPages
  const perPage = stats.pageRequests / stats.distinctPages
  const row = (what: string, value: number, unit: string, more: Partial<BenchRow> = {}): BenchRow => ({
    what: `${site.name}: ${what}`,
    value,
    unit,
    ...more,
  })
  return [
    row('distinct pages', stats.distinctPages, 'pages', {
      bar: `= ${stats.expectedPages}`,
      ok: stats.distinctPages === stats.expectedPages,
    }),
    row('robots violations', stats.robotsViolations, 'requests', { bar: '= 0', ok: stats.robotsViolations === 0 }),
    row('page requests per distinct page', perPage, 'requests', { bar: '<= 1.03', ok: perPage <= 1.03 }),
    row('robots.txt requests per host', stats.robotsRequests / site.hosts, 'requests'),
    row('CPU per 1,000 distinct pages', cpu, 's', { bar: `<= ${site.bar}`, ok: cpu <= site.bar }),
    row('distinct pages per second, start-up included', stats.distinctPages / wallSec, 'pages/s'),
    row('peak memory', usage.maxRssMib, 'MiB'),
  ]
}

/** wget, which follows links from one seed over all hosts and stores nothing. */
async function measurePeer(web: Web, site: Site): Promise<BenchRow[]> {
  const dir = mkdtempSync(join(tmpdir(), 'weir-bench-wget-'))
  try {
    if (spawnSync('wget', ['--version']).status !== 0) return []
    const flags = '--level=inf --recursive --span-hosts --delete-after -q --tries=1 --follow-tags=a'
    // `times` of the shell gives the CPU time of its ended children.
    const shell = spawn('bash', ['-c', `wget ${flags} -P '${dir}' '${web.seeds[0]}'; times`], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    let text = ''
    shell.stdout.setEncoding('utf8').on('data', (part: string) => {
      text += part
    })
    await ended(shell)
    const minutes = [...(text.trim().split('\n').at(-1) ?? '').matchAll(/(\d+)m([\d.]+)s/g)]
    const cpuSec = minutes.reduce((sum, [, m, s]) => sum + Number(m) * 60 + Number(s), 0)
    const stats = await web.stats()
    return [
      {
        what: `${site.name}: wget, CPU per 1,000 distinct pages`,
        value: (cpuSec * 1000) / stats.distinctPages,
        unit: 's',
      },
      { what: `${site.name}: wget, distinct pages`, value: stats.distinctPages, unit: 'pages' },
      { what: `${site.name}: wget, robots violations`, value: stats.robotsViolations, unit: 'requests' },
    ]
  } finally {
    await web.stop()
    rmSync(dir, { recursive: true, force: true })
  }
}

/** Self time by stage, from a run with the sampling profiler on. */
async function profile(web: Web, site: Site): Promise<BenchRow[]> {
  const dir = mkdtempSync(join(tmpdir(), 'weir-bench-profile-'))
  try {
    const { stats } = await crawl(web, ['--cpu-prof', `--cpu-prof-dir=${dir}`])
    const file = readdirSync(dir).find((name) => name.endsWith('.cpuprofile'))
    if (file === undefined) return []
    const times = stageTimes(JSON.parse(readFileSync(join(dir, file), 'utf8')) as CpuProfile)
    return [...times]
      .sort((a, b) => b[1] - a[1])
      .map(([stage, us]) => ({
        what: `${site.name}: of it ${stage}`,
        value: us / stats.distinctPages,
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

async function crawl(web: Web, nodeFlags: readonly string[]) {
  const dir = mkdtempSync(join(tmpdir(), 'weir-bench-crawl-'))
  try {
    const usageFile = join(dir, 'usage.json')
    const command = [join(root, 'topology/cli/weir.ts'), 'crawl', ...web.seeds]
    const flags = ['--allow-private', '--delay-ms', '0', '--data', join(dir, 'data'), '--json']
    const started = performance.now()
    const crawler = spawn(
      process.execPath,
      [...nodeFlags, '--import', join(import.meta.dirname, 'usage.ts'), ...command, ...flags],
      { stdio: ['ignore', 'ignore', 'inherit'], env: { ...process.env, WEIR_BENCH_USAGE: usageFile } },
    )
    await ended(crawler)
    const wallSec = (performance.now() - started) / 1000
    const stats: WebStats = await web.stats()
    const usage = JSON.parse(readFileSync(usageFile, 'utf8')) as { cpuSec: number; maxRssMib: number }
    return { stats, usage, wallSec }
  } finally {
    await web.stop()
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
