/**
 * The embedded ClickHouse: chDB in a process of its own, behind as much of ClickHouse's HTTP interface as
 * @clickhouse/client uses. A program: one JSON line {dir, password, lockWaitMs, enginePackage} on stdin, one {port} or {error, code} on
 * stdout; it ends when stdin does, so it never outlives its parent.
 *
 * Each request gets an engine connection of its own: settings of one would stick to the next. Rows go through a file:
 * the engine's inline entry cuts data at the first blank line.
 */
import { timingSafeEqual } from 'node:crypto'
import { createWriteStream, mkdirSync, rmSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Session } from 'chdb'
import { assertReadOnly } from '../read-only.ts'

interface Engine {
  open(): Session
}

interface FrontOptions {
  readonly dir: string
  readonly password: string
  readonly lockWaitMs: number
  readonly enginePackage: string
}

const maxStatementBytes = 1 << 20
const maxParallel = 4
const endWaitMs = 5_000
const lockRetryMs = 50
/** Names in the query string that are no settings. */
const notSettings = new Set(['query', 'database', 'query_id', 'default_format', 'session_id', 'role'])

let started = false

if (import.meta.main) {
  const lines = createInterface({ input: process.stdin })
  lines.once('line', (line) => {
    const options = JSON.parse(line) as FrontOptions
    run(options, lines).then(
      (port) => say({ port }),
      (error: Error & { code?: string }) => {
        say({ error: error.message, code: error.code ?? 'unavailable' })
        process.exit(1)
      },
    )
  })
  lines.once('close', () => {
    if (!started) process.exit(0)
  })
}

function say(line: object): void {
  process.stdout.write(`${JSON.stringify(line)}\n`)
}

async function run(options: FrontOptions, parent: NodeJS.EventEmitter): Promise<number> {
  started = true
  let ended = false
  parent.once('close', () => {
    ended = true
  })
  const { Session } = await loadEngine(options.enginePackage)
  const engine: Engine = { open: () => new Session(options.dir) }
  const keeper = await openWhenFree(engine, options.lockWaitMs, () => ended)
  const spool = join(options.dir, 'weir-inserts')
  rmSync(spool, { recursive: true, force: true })
  mkdirSync(spool, { recursive: true })
  const front = createFront(engine, spool, options.password)
  await new Promise<void>((resolve, reject) => {
    front.server.once('error', reject)
    front.server.listen(0, '127.0.0.1', resolve)
  })
  const end = async () => {
    // Whatever hangs, the directory's lock must not outlive the parent.
    setTimeout(() => process.kill(process.pid, 'SIGKILL'), endWaitMs).unref()
    front.server.close()
    front.server.closeIdleConnections()
    await front.idle()
    keeper.close()
    process.exit(0)
  }
  if (ended) await end()
  parent.once('close', () => void end())
  return (front.server.address() as AddressInfo).port
}

async function loadEngine(name: string): Promise<typeof import('chdb')> {
  try {
    return (await import(name)) as typeof import('chdb')
  } catch (cause) {
    const why = (cause as Error).message.split('\n', 1)[0]
    const text = `${why} (npm install chdb, which has builds for Linux and macOS; or name a server in CLICKHOUSE_URL)`
    throw Object.assign(new Error(text, { cause }), { code: 'not-installed' })
  }
}

/** The engine locks its directory: an earlier front, whose parent was killed, may be about to end. */
async function openWhenFree(engine: Engine, waitMs: number, ended: () => boolean): Promise<Session> {
  for (let waitedMs = 0; ; waitedMs += lockRetryMs) {
    try {
      return engine.open()
    } catch (error) {
      // CANNOT_OPEN_FILE: somebody has the lock.
      const isLocked = /\b(Code: 76|CANNOT_OPEN_FILE|is being used|lock)\b/i.test((error as Error).message)
      if (!isLocked || waitedMs >= waitMs || ended()) throw error
      await sleep(lockRetryMs)
    }
  }
}

function createFront(engine: Engine, spool: string, password: string): { server: Server; idle(): Promise<void> } {
  const wanted = Buffer.from(`Basic ${Buffer.from(`default:${password}`).toString('base64')}`)
  let files = 0
  let running = 0
  const waiting: (() => void)[] = []
  let onIdle: (() => void) | undefined

  const server = createServer((req, res) => {
    const given = Buffer.from(req.headers.authorization ?? '')
    if (given.length !== wanted.length || !timingSafeEqual(given, wanted)) {
      req.resume()
      return fail(res, 403, 516, 'Code: 516. DB::Exception: Authentication failed. (AUTHENTICATION_FAILED)')
    }
    if (req.url?.startsWith('/ping')) return void res.end('Ok.\n')
    handle(req, res).catch((error: Error) => {
      const code = Number(/Code: (\d+)/.exec(error.message)?.[1] ?? 1002)
      const text = code === 1002 ? `Code: 1002. DB::Exception: ${error.message} (UNKNOWN_EXCEPTION)` : error.message
      fail(res, 500, code, text)
    })
  })

  async function handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    await slot()
    try {
      const params = new URL(req.url ?? '/', 'http://front').searchParams
      const statement = params.get('query')
      if (statement === null) {
        const result = await perform(params, await readText(req))
        res.setHeader('content-type', 'application/json; charset=UTF-8')
        res.end(result)
        return
      }
      const file = join(spool, String(files++))
      try {
        await pipeline(req, createWriteStream(file))
        await perform(params, fromFile(statement, file))
      } finally {
        await rm(file, { force: true })
      }
      res.end()
    } finally {
      free()
    }
  }

  async function perform(params: URLSearchParams, sql: string): Promise<Uint8Array> {
    const session = engine.open()
    try {
      if (params.has('readonly')) assertReadOnly(sql)
      const database = params.get('database')
      if (database !== null) await session.queryAsync(`USE ${quoteName(database)}`, { format: 'Null' })
      const settings = settingsOf(params)
      if (settings !== '') await session.queryAsync(`SET ${settings}`, { format: 'Null' })
      return (await session.queryAsync(sql, { format: 'TabSeparated' })).bytes()
    } finally {
      session.close()
    }
  }

  async function slot(): Promise<void> {
    if (running >= maxParallel) await new Promise<void>((resolve) => waiting.push(resolve))
    running++
  }

  function free(): void {
    running--
    waiting.shift()?.()
    if (running === 0) onIdle?.()
  }

  return {
    server,
    idle: () => (running === 0 ? Promise.resolve() : new Promise((resolve) => (onIdle = resolve))),
  }

  function settingsOf(all: URLSearchParams): string {
    const settings: string[] = []
    for (const [name, value] of all) {
      if (notSettings.has(name)) continue
      if (!/^[a-z][a-z0-9_]*$/.test(name)) {
        throw new Error(`Code: 115. DB::Exception: Unknown setting ${name}. (UNKNOWN_SETTING)`)
      }
      settings.push(`${name} = ${quoteText(value)}`)
    }
    return settings.join(', ')
  }
}

function fail(res: ServerResponse, status: number, code: number, text: string): void {
  if (res.headersSent) return void res.destroy()
  res.writeHead(status, { 'content-type': 'text/plain; charset=UTF-8', 'x-clickhouse-exception-code': code })
  res.end(text)
}

/** `INSERT INTO t (…) FORMAT F` with its rows in a file. */
function fromFile(statement: string, file: string): string {
  const insert = /^(\s*INSERT\s+INTO\s.*\S)\s+FORMAT\s+(\w+)\s*$/is.exec(statement)
  if (insert === null) {
    throw new Error('Code: 62. DB::Exception: a body needs INSERT INTO … FORMAT … in front of it. (SYNTAX_ERROR)')
  }
  return `${insert[1]} FROM INFILE ${quoteText(file)} FORMAT ${insert[2]}`
}

async function readText(req: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of req as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > maxStatementBytes) throw new Error('Code: 62. DB::Exception: the statement is too long. (SYNTAX_ERROR)')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function quoteText(text: string): string {
  return `'${text.replace(/[\\']/g, '\\$&')}'`
}

function quoteName(name: string): string {
  return `\`${name.replace(/[\\`]/g, '\\$&')}\``
}
