import { randomBytes, timingSafeEqual } from 'node:crypto'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { z } from 'zod'
import { CommandError } from './errors.ts'

/**
 * How the command line asks the process that holds the data directory: a server on loopback whose port and token stand
 * in `control.json`, which only the owner can read.
 */
export type ControlCalls = { readonly [call: string]: (argument: string) => Promise<unknown> }

export interface ControlServer {
  close(): Promise<void>
}

const appName = 'weir'
const controlFileSchema = z.object({ pid: z.number().int(), port: z.number().int(), token: z.string() })

export async function startControlServer(file: string, calls: ControlCalls): Promise<ControlServer> {
  const token = randomBytes(24).toString('hex')
  const server = createServer((req, res) => {
    const url = new URL(req.url ?? '/', 'http://localhost')
    const answer = (status: number, body: unknown) => {
      const headers = { 'content-type': 'application/json', server: appName, connection: 'close' }
      res.writeHead(status, headers).end(JSON.stringify(body))
    }
    if (!sameText(req.headers.authorization ?? '', `Bearer ${token}`)) return answer(401, { error: 'no valid token' })
    const name = url.pathname.slice(1)
    const call = Object.hasOwn(calls, name) ? calls[name] : undefined
    if (req.method !== 'GET' || call === undefined) return answer(404, { error: `no call ${name}` })
    call(url.searchParams.get('argument') ?? '').then(
      (value) => answer(200, value),
      (error: Error & { code?: string; exitCode?: number }) =>
        answer(error.exitCode === undefined ? 500 : 400, {
          error: error.message,
          code: error.code,
          exitCode: error.exitCode,
        }),
    )
  })
  await listen(server)
  const { port } = server.address() as AddressInfo
  writeFileSync(`${file}.tmp`, JSON.stringify({ pid: process.pid, port, token }), { mode: 0o600 })
  renameSync(`${file}.tmp`, file)
  return {
    close: () =>
      new Promise((done) => {
        server.close(() => done())
        server.closeAllConnections()
      }),
  }
}

/**
 * Calls the process that runs, or gives undefined when none does: a killed one leaves a file behind whose port nobody
 * listens on, or somebody else. Throws CommandError with what the process says.
 */
export async function callControl(
  file: string,
  call: string,
  argument: string,
): Promise<{ value: unknown } | undefined> {
  let control: z.infer<typeof controlFileSchema>
  try {
    control = controlFileSchema.parse(JSON.parse(readFileSync(file, 'utf8')))
  } catch {
    return undefined
  }
  const response = await get(control.port, control.token, call, argument)
  if (response === undefined || response.app !== appName || response.status === 401) return undefined
  const body = JSON.parse(response.text) as unknown
  if (response.status === 200) return { value: body }
  const { error, code, exitCode } = body as { error?: string; code?: string; exitCode?: number }
  throw new CommandError(
    code ?? 'control',
    exitCode === 2 || exitCode === 3 ? exitCode : 1,
    error ?? `asking the running process: HTTP ${response.status}`,
  )
}

function get(
  port: number,
  token: string,
  call: string,
  argument: string,
): Promise<{ status: number; app: string | undefined; text: string } | undefined> {
  return new Promise((done, fail) => {
    const path = `/${encodeURIComponent(call)}?argument=${encodeURIComponent(argument)}`
    const req = request(
      { host: '127.0.0.1', port, path, headers: { authorization: `Bearer ${token}` }, timeout: 30_000, agent: false },
      (res) => {
        const chunks: Buffer[] = []
        res.on('data', (chunk: Buffer) => chunks.push(chunk))
        res.on('end', () => {
          const app = res.headers.server as string | undefined
          done({ status: res.statusCode ?? 0, app, text: Buffer.concat(chunks).toString('utf8') })
        })
        res.on('error', () => done(undefined))
      },
    )
    // Nobody there, or it ended while it was asked: then the directory itself is to be asked.
    req.on('error', (error) => (error instanceof CommandError ? fail(error) : done(undefined)))
    req.on('timeout', () => {
      req.destroy(new CommandError('control', 1, 'asking the running process: no answer within 30 s'))
    })
    req.end()
  })
}

function listen(server: Server): Promise<void> {
  return new Promise((done, fail) => {
    server.once('error', fail)
    server.listen(0, '127.0.0.1', () => done())
  })
}

function sameText(a: string, b: string): boolean {
  const left = Buffer.from(a)
  const right = Buffer.from(b)
  return left.length === right.length && timingSafeEqual(left, right)
}
