import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

export interface ChildOptions {
  /** Resolves `ready` with the first line of stdout that this accepts. Default: the first line. */
  readonly ready?: (line: string) => boolean
  /** Default 20,000. */
  readonly readyTimeoutMs?: number
  /** Added to this process's environment; undefined takes a variable away. */
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly cwd?: string
  /** Flags of node itself. */
  readonly execArgv?: readonly string[]
}

export interface Child {
  readonly pid: number
  /** Rejects when the child ends, or time runs out, before the line comes. */
  readonly ready: Promise<string>
  readonly exit: Promise<{
    readonly code: number | null
    readonly signal: NodeJS.Signals | null
  }>
  stdout(): string
  stderr(): string
  /** Signals this child alone; false if it is gone. */
  kill(signal?: NodeJS.Signals): boolean
}

/** Anything that runs a function when a test ends, such as a TestContext. */
export interface CleanUp {
  after(fn: () => Promise<void> | void): void
}

/** Starts `node script args`. When the test ends the child is told to end, and is killed if it does not within 2 s. */
export function startNode(t: CleanUp, script: string, args: readonly string[], options: ChildOptions = {}): Child {
  const child = spawn(process.execPath, [...(options.execArgv ?? []), script, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    cwd: options.cwd,
    env: { ...process.env, NODE_TEST_CONTEXT: undefined, ...options.env },
  })
  const out: string[] = []
  const err: string[] = []
  child.stderr.setEncoding('utf8').on('data', (text: string) => err.push(text))
  const exit = new Promise<{
    code: number | null
    signal: NodeJS.Signals | null
  }>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => resolve({ code, signal }))
  })
  const ready = new Promise<string>((resolve, reject) => {
    const describe = (what: string): Error => new Error(`starting ${script}: ${what}\n${err.join('')}`)
    const timer = setTimeout(() => reject(describe('not ready in time')), options.readyTimeoutMs ?? 20_000)
    createInterface({ input: child.stdout }).on('line', (line) => {
      out.push(line)
      if (!(options.ready?.(line) ?? true)) return
      clearTimeout(timer)
      resolve(line)
    })
    const ended = (what: string): void => {
      clearTimeout(timer)
      reject(describe(what))
    }
    exit.then(
      ({ code, signal }) => ended(`ended with ${signal ?? code}`),
      (error: Error) => ended(error.message),
    )
  })
  // Whoever does not wait for it is not to be ended by it.
  ready.catch(() => {})
  t.after(() => stop(child, exit))
  return {
    pid: child.pid ?? -1,
    ready,
    exit,
    stdout: () => out.map((line) => `${line}\n`).join(''),
    stderr: () => err.join(''),
    kill: (signal = 'SIGKILL') => child.kill(signal),
  }
}

async function stop(child: ChildProcess, exit: Promise<unknown>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), 2_000)
  await exit.catch(() => {})
  clearTimeout(timer)
}
