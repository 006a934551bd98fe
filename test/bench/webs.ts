/** The webs that a crawl is measured on: each in a process of its own, which counts what it was asked for. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { cpSync, existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import type { WebRequest } from '../web/log.ts'

export interface Site {
  readonly name: string
  readonly hosts: number
  readonly pages: number
  readonly bytes: number
  /** Of CPU seconds per 1,000 distinct pages. */
  readonly bar: number
}

export interface WebStats {
  readonly expectedPages: number
  /** Distinct pages that were to be had and were asked for. */
  readonly distinctPages: number
  /** Requests of pages, robots.txt not among them. */
  readonly pageRequests: number
  readonly robotsRequests: number
  readonly robotsViolations: number
}

export interface Web {
  readonly seeds: readonly string[]
  stats(): Promise<WebStats>
  stop(): Promise<void>
}

const root = resolve(import.meta.dirname, '../..')

/** The peers' synthetic web: WEIR_BENCH_FARM names the folder of its Go source. Undefined without it or without Go. */
export function findFarm(): ((site: Site, seed: number) => Promise<Web>) | undefined {
  const source = process.env.WEIR_BENCH_FARM ?? resolve(root, '../shared/tools/peers/farm')
  if (!existsSync(join(source, 'main.go'))) return undefined
  const dir = join(tmpdir(), 'weir-bench-farm')
  cpSync(source, dir, { recursive: true })
  const built = spawnSync('go', ['build', '-o', 'farm', '.'], { cwd: dir, stdio: 'inherit' })
  if (built.status !== 0) return undefined
  return (site, seed) => startFarm(join(dir, 'farm'), site, seed)
}

async function startFarm(farm: string, site: Site, seed: number): Promise<Web> {
  const port = 8900
  const flags = { hosts: site.hosts, pages: site.pages, size: site.bytes, seed, port }
  const server = spawn(
    farm,
    Object.entries(flags).flatMap(([name, value]) => [`-${name}`, String(value)]),
    { stdio: 'ignore' },
  )
  const ask = async (path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).text()
  await until(() => ask('/__stats'))
  return {
    seeds: (await ask('/__seeds')).trim().split('\n'),
    async stats() {
      const stats = JSON.parse(await ask('/__stats')) as { [name: string]: number }
      return {
        expectedPages: stats.expectedPages!,
        distinctPages: stats.uniqueAllowed!,
        pageRequests: stats.pages!,
        robotsRequests: stats.robotsFetches!,
        robotsViolations: stats.robotsViolations!,
      }
    },
    stop: () => stopped(server),
  }
}

/** The simulated web of test/web, without faults. */
export async function startOwnWeb(site: Site, seed: number): Promise<Web> {
  const flags = { hosts: site.hosts, pages: site.pages, bytes: site.bytes, seed }
  const args = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, String(value)])
  const server = spawn(process.execPath, [join(root, 'test/web/server.ts'), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ready = await new Promise<string>((done) => createInterface({ input: server.stdout }).once('line', done))
  const { port, control } = JSON.parse(ready) as { port: number; control: number }
  const lines = async (path: string) =>
    (await (await fetch(`http://127.0.0.1:${control}/__web/${path}`)).text()).split('\n').filter((line) => line !== '')
  const expected = new Set(await lines('expected'))
  return {
    seeds: [...new Set([...expected].map((url) => `${new URL(url).origin}/`))],
    async stats() {
      const requests = (await lines('log')).map((line) => JSON.parse(line) as WebRequest)
      const urls = requests.map(({ host, path }) => `http://${host}:${port}${path}`)
      const isRobots = (url: string) => url.endsWith('/robots.txt')
      const pages = urls.filter((url) => expected.has(url))
      return {
        expectedPages: expected.size,
        distinctPages: new Set(pages).size,
        pageRequests: pages.length,
        robotsRequests: urls.filter(isRobots).length,
        robotsViolations: urls.filter((url) => url.includes('/private/') && !url.includes('/private/open-')).length,
      }
    },
    stop: () => stopped(server),
  }
}

async function stopped(child: ChildProcess): Promise<void> {
  const exit = new Promise((done) => child.once('exit', done))
  if (child.exitCode === null && child.signalCode === null) {
    child.kill('SIGTERM')
    await exit
  }
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
