import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { TestContext } from 'node:test'

const script = resolve(import.meta.dirname, '../../../topology/cli/weir.ts')

export interface RunOptions {
  readonly stdin?: string
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
}

export interface Ended {
  /** 128 + signal where there was one, as a shell has it. */
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

export interface Running {
  readonly ended: Promise<Ended>
  kill(signal: 'SIGINT' | 'SIGTERM' | 'SIGKILL'): void
  stdout(): string
  stderr(): string
  /** Ends this side's reading of its stdout, as `head` does. */
  closeStdout(): void
}

/** The real command line as a child process, with nothing of this one's settings and without ClickHouse. */
export function startWeir(t: TestContext, args: readonly string[], options: RunOptions = {}): Running {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('WEIR_')))
  const child = spawn(process.execPath, [script, ...args], {
    env: { ...env, WEIR_ANALYTICS: 'false', NODE_TEST_CONTEXT: undefined, ...options.env },
    cwd: options.cwd,
  })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  child.stdin.on('error', () => {})
  if (options.stdin !== undefined) child.stdin.end(options.stdin)
  const ended = new Promise<Ended>((done, fail) => {
    child.once('error', fail)
    child.once('close', (code, signal) => done({ code: code ?? (signal === 'SIGINT' ? 130 : 137), stdout, stderr }))
  })
  t.after(async () => {
    child.kill('SIGKILL')
    await ended
  })
  return {
    ended,
    kill: (signal) => void child.kill(signal),
    stdout: () => stdout,
    stderr: () => stderr,
    closeStdout: () => void child.stdout.destroy(),
  }
}

export function weir(t: TestContext, args: readonly string[], options: RunOptions = {}): Promise<Ended> {
  return startWeir(t, args, { stdin: '', ...options }).ended
}

export function temporary(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'weir-cli-'))
  t.after(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

/** What `get` answers for a path: HTML, or a whole answer; undefined = 404. */
export type Site = (path: string) => string | Answer | undefined
export interface Answer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  /** Sent when this resolves. */
  readonly after?: Promise<void>
}

/** A server on loopback; `paths` has every request in order. */
export async function serve(t: TestContext, site: Site): Promise<{ origin: string; paths: string[] }> {
  const paths: string[] = []
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const path = request.url ?? '/'
    paths.push(path)
    const found = site(path)
    const answer: Answer = typeof found === 'string' ? { body: found } : (found ?? { status: 404, body: 'none' })
    const send = () =>
      response
        .writeHead(answer.status ?? 200, { 'content-type': 'text/html', ...answer.headers })
        .end(answer.body ?? '')
    if (answer.after === undefined) send()
    else void answer.after.then(send)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, paths }
}

/** `pages` pages: /, which links to the others, /1, /2, …; there is no robots.txt. */
export function starSite(pages: number): (path: string) => string | undefined {
  return (path) => {
    const n = /^\/([1-9]\d*)?$/.exec(path)
    if (n === null || Number(n[1] ?? 0) >= pages) return undefined
    const links = Array.from({ length: pages - 1 }, (_, i) => `<a href="/${i + 1}">${i + 1}</a>`).join(' ')
    return path === '/' ? `<title>Start</title>${links}` : `<title>Page ${path}</title><p>Text of page ${path}`
  }
}

/** Waits until `check` holds; fails with what it was waiting for. */
export async function until(what: string, check: () => boolean, withinMs = 30_000): Promise<void> {
  const end = performance.now() + withinMs
  while (!check()) {
    if (performance.now() > end) throw new Error(`waiting until ${what}: not within ${withinMs} ms`)
    await new Promise((resume) => setTimeout(resume, 10))
  }
}

export function json(text: string): { [name: string]: unknown }[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as { [name: string]: unknown })
}
