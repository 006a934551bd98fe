import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { createClickHouseAnalytics } from '../clickhouse.ts'
import { AnalyticsError } from '../errors.ts'
import type { Analytics } from '../types.ts'

export interface ChdbOptions {
  /** Holds the data; made when it is missing. */
  readonly dir: string
  readonly database: string
  readonly schemaDir: URL
  /** A new password for each start of the engine. */
  readonly newPassword: () => string
  /** How long to wait for an earlier process to let go of the directory. Default 15 s. */
  readonly lockWaitMs?: number
  /** Told the process id of each child that answers. */
  readonly onStarted?: (pid: number) => void
  /** Default `chdb`. */
  readonly enginePackage?: string
}

/**
 * The embedded ClickHouse: chDB in a child process that ends with this one. It is started by the first call, and again
 * by the next call after it has died. Calls reject with `not-installed` where the optional package `chdb` is missing.
 */
export function createChdbAnalytics(options: ChdbOptions): Analytics {
  let front: Promise<Front> | undefined
  const closing = new AbortController()

  function current(): Promise<Front> {
    if (closing.signal.aborted)
      return Promise.reject(new AnalyticsError('closed', 'asking the embedded ClickHouse: it is closed'))
    if (front === undefined) {
      const starting = startFront(options, closing.signal, () => {
        if (front === starting) front = undefined
      })
      starting.catch(() => {})
      front = starting
    }
    return front
  }

  return {
    ensureSchema: async () => (await current()).analytics.ensureSchema(),
    insert: async (table, rows, token) => (await current()).analytics.insert(table, rows, token),
    query: async (sql) => (await current()).analytics.query(sql),
    access: async () => (await current()).analytics.access(),
    async close() {
      closing.abort()
      const last = await front?.catch(() => undefined)
      await last?.stop()
    },
  }
}

interface Front {
  readonly analytics: Analytics
  stop(): Promise<void>
}

const program = fileURLToPath(new URL('front.ts', import.meta.url))
const startSlackMs = 30_000
const stopWaitMs = 10_000
const keptMessageChars = 2_000

async function startFront(options: ChdbOptions, closing: AbortSignal, onGone: () => void): Promise<Front> {
  const { dir, database, schemaDir, lockWaitMs = 15_000, enginePackage = 'chdb' } = options
  const password = options.newPassword()
  mkdirSync(dir, { recursive: true })
  const child = spawn(process.execPath, [program], {
    // Ctrl-C is for the parent: it ends the child when it has no more use of it.
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...process.env, UV_THREADPOOL_SIZE: '8' },
  })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-keptMessageChars)
  })
  const exited = new Promise<void>((resolve) => {
    child.once('error', () => resolve())
    child.once('exit', () => resolve())
  })
  exited.then(onGone)
  // It may be gone when it is written to.
  child.stdin.on('error', () => {})
  // It ends with its stdin, also while it waits for the directory.
  closing.addEventListener('abort', () => child.stdin.end())
  child.stdin.write(`${JSON.stringify({ dir, password, lockWaitMs, enginePackage })}\n`)
  let port: number
  try {
    port = await firstAnswer(child, lockWaitMs + startSlackMs, () => said)
  } catch (error) {
    child.kill('SIGKILL')
    throw error
  }
  options.onStarted?.(child.pid!)
  const url = `http://127.0.0.1:${port}`
  const analytics = createClickHouseAnalytics({ url, username: 'default', password, database, schemaDir })
  exited.then(() => analytics.close())
  return {
    analytics,
    async stop() {
      await analytics.close()
      const timer = setTimeout(() => child.kill('SIGKILL'), stopWaitMs)
      await exited
      clearTimeout(timer)
    },
  }
}

function firstAnswer(child: ChildProcess, timeoutMs: number, said: () => string): Promise<number> {
  return new Promise((resolve, reject) => {
    const fail = (code: 'unavailable' | 'not-installed', why: string) => {
      clearTimeout(timer)
      reject(new AnalyticsError(code, `starting the embedded ClickHouse: ${why}`))
    }
    const timer = setTimeout(() => fail('unavailable', `no answer within ${timeoutMs / 1000} s`), timeoutMs)
    child.once('error', (error) => fail('unavailable', error.message))
    child.once('exit', (code, signal) => {
      // A build for other processors.
      fail(signal === 'SIGILL' ? 'not-installed' : 'unavailable', `it ended with ${signal ?? code}: ${said()}`)
    })
    createInterface({ input: child.stdout! }).on('line', (line) => {
      if (!line.startsWith('{')) return
      const answer = JSON.parse(line) as { port: number } | { error: string; code: string }
      if ('error' in answer) {
        return fail(answer.code === 'not-installed' ? 'not-installed' : 'unavailable', answer.error)
      }
      clearTimeout(timer)
      resolve(answer.port)
    })
  })
}
