import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { WebRequest } from './log.ts'

/** Wall clock with fractions, that never jumps after the process's start. */
export function stampMs(): number {
  return performance.timeOrigin + performance.now()
}

/** Puts a request into the log and closes its line when the response ends, or when the connection breaks. */
export function record(log: WebRequest[], request: IncomingMessage, response: ServerResponse): WebRequest {
  const entry: WebRequest = {
    host: hostOf(request),
    path: request.url ?? '/',
    startMs: stampMs(),
    endMs: null,
    status: 0,
    complete: false,
    retryAfterMs: null,
    address: (request.socket.localAddress ?? '').replace(/^::ffff:/, ''),
    ...(request.socket.remotePort === undefined ? {} : { remotePort: request.socket.remotePort }),
  }
  log.push(entry)
  // The end is when the last byte is handed to the system. `finish` comes a turn of the event loop later, on a busy
  // machine long after the client has read it, and would show gaps shorter than they were.
  const { write, end } = response
  let lastPieceMs = 0
  response.write = function (this: ServerResponse, ...piece: unknown[]) {
    lastPieceMs = stampMs()
    return Reflect.apply(write, this, piece)
  } as typeof write
  response.end = function (this: ServerResponse, ...piece: unknown[]) {
    // With a Content-Length the last piece is the end; otherwise the last chunk, which `end` writes.
    const isSent = lastPieceMs > 0 && !response.chunkedEncoding && (piece[0] === undefined || piece[0] === null)
    entry.endMs ??= isSent ? lastPieceMs : stampMs()
    return Reflect.apply(end, this, piece)
  } as typeof end
  response.once('finish', () => {
    entry.endMs ??= stampMs()
    entry.status = response.statusCode
    entry.complete = true
  })
  response.once('close', () => {
    entry.endMs ??= stampMs()
    if (response.headersSent) entry.status = response.statusCode
  })
  return entry
}

/** Of the Host header, without port, lower case. */
export function hostOf(request: IncomingMessage): string {
  return (request.headers.host ?? '').replace(/:\d*$/, '').toLowerCase()
}

export interface Listening {
  readonly port: number
  readonly addresses: readonly string[]
  close(): Promise<void>
}

/** One port on every address; with port 0 the system picks it on the first. */
export async function listen(listener: RequestListener, addresses: readonly string[], port = 0): Promise<Listening> {
  const servers: Server[] = []
  let chosen = port
  for (const address of addresses) {
    // A client may keep a connection for as long as it likes: closing it early would look like a fault.
    const server = createServer({ keepAliveTimeout: 0, requestTimeout: 0 }, listener)
    servers.push(server)
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(chosen, address, resolve)
    })
    chosen = (server.address() as AddressInfo).port
  }
  return {
    port: chosen,
    addresses,
    async close() {
      await Promise.all(
        servers.map((server) => {
          const closed = new Promise((resolve) => server.close(resolve))
          server.closeAllConnections()
          return closed
        }),
      )
    },
  }
}

export interface ControlOptions {
  readonly log: readonly WebRequest[]
  /** What must be fetched, if it is known. */
  readonly expected: Iterable<string> | null
  /** For the ready line, besides the ports. */
  readonly about: Readonly<Record<string, unknown>>
  /** The process ends after so long without a request. */
  readonly idleMs: number
}

/**
 * Makes this process a server's own: a control port with `/__web/log` (NDJSON, one WebRequest a line) and
 * `/__web/expected` (a URL a line), one JSON line on stdout when ready, an end on SIGTERM, SIGINT or idleness.
 */
export async function serveProcess(main: Listening, options: ControlOptions): Promise<void> {
  let lastMs = performance.now()
  let seen = 0
  const control = await listen(
    (request, response) => {
      lastMs = performance.now()
      const path = (request.url ?? '').split('?', 1)[0]
      if (path === '/__web/log') {
        response.setHeader('content-type', 'application/x-ndjson')
        response.end(options.log.map((entry) => `${JSON.stringify(entry)}\n`).join(''))
      } else if (path === '/__web/expected' && options.expected !== null) {
        response.setHeader('content-type', 'text/plain; charset=utf-8')
        response.end([...options.expected].map((url) => `${url}\n`).join(''))
      } else {
        response.statusCode = 404
        response.end()
      }
    },
    ['127.0.0.1'],
  )
  const idle = setInterval(
    () => {
      if (options.log.length > seen || options.log.some((entry) => entry.endMs === null)) lastMs = performance.now()
      seen = options.log.length
      if (performance.now() - lastMs > options.idleMs) stop()
    },
    Math.max(10, Math.min(5_000, options.idleMs / 4)),
  )
  const stop = (): void => {
    clearInterval(idle)
    void Promise.all([main.close(), control.close()]).then(() => process.exit(0))
  }
  process.once('SIGTERM', stop)
  process.once('SIGINT', stop)
  const ready = {
    port: main.port,
    control: control.port,
    addresses: main.addresses,
    pid: process.pid,
    ...options.about,
  }
  process.stdout.write(`${JSON.stringify(ready)}\n`)
}

/** Loopback addresses 127.0.0.1, 127.0.0.2, … */
export function loopbackAddresses(count: number): string[] {
  if (!(count >= 1 && count <= 250)) throw new Error(`choosing loopback addresses: ${count} is not within 1 and 250`)
  return Array.from({ length: count }, (_, i) => `127.0.0.${i + 1}`)
}

/** A whole number from the command line. */
export function wholeNumber(name: string, text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise
  if (!/^\d+$/.test(text)) throw new Error(`reading --${name}: ${text} is not a whole number`)
  return Number(text)
}
