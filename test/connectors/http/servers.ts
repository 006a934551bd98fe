import { once } from 'node:events'
import http from 'node:http'
import net from 'node:net'
import { createSystemClock } from '../../../connectors/clock/system.ts'
import type { Clock } from '../../../connectors/clock/types.ts'
import type { HttpClient, HttpOutcome, HttpRequest } from '../../../connectors/http/types.ts'
import { createUndiciClient, type UndiciClientOptions } from '../../../connectors/http/undici.ts'
import { request } from '../../suites/http.ts'

export interface TestServer {
  readonly port: number
  readonly origin: string
  /** Connections accepted so far. */
  connections(): number
  close(): Promise<void>
}

/** Speaks raw bytes: `talk` gets the socket and what came on it, once for each chunk. */
export async function rawServer(talk: (socket: net.Socket, data: string, nth: number) => void): Promise<TestServer> {
  let nth = 0
  return listen(
    net.createServer((socket) => {
      socket.on('data', (data) => talk(socket, data.toString('latin1'), nth++))
    }),
  )
}

export async function httpServer(handler: http.RequestListener): Promise<TestServer> {
  return listen(http.createServer(handler))
}

export async function listen(server: net.Server): Promise<TestServer> {
  const sockets = new Set<net.Socket>()
  let connections = 0
  server.on('connection', (socket: net.Socket) => {
    connections++
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as net.AddressInfo
  return {
    port,
    origin: `http://page.localhost:${port}`,
    connections: () => connections,
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** A port on which nobody listens. */
export async function deafPort(): Promise<number> {
  const server = await listen(net.createServer())
  await server.close()
  return server.port
}

/** Time that runs `factor` times as fast, so that deadlines of seconds take milliseconds. */
export function fastClock(factor: number): Clock {
  const system = createSystemClock()
  const startMs = system.nowMs()
  return {
    nowMs: () => startMs + Math.round((system.nowMs() - startMs) * factor),
    monotonicMs: () => system.monotonicMs() * factor,
    setTimer: (delayMs, callback) => system.setTimer(delayMs / factor, callback),
  }
}

export function exchange(client: HttpClient, asked: HttpRequest): Promise<HttpOutcome> {
  return new Promise((resolve) => client.request(asked, resolve))
}

/** One request to a server of its own. */
export async function ask(
  server: TestServer,
  path: string,
  changes: Partial<HttpRequest> = {},
  options: Partial<UndiciClientOptions> = {},
): Promise<HttpOutcome> {
  const client = createUndiciClient({
    clock: createSystemClock(),
    allowPrivate: true,
    ...options,
  })
  try {
    return await exchange(client, request(server.origin + path, '127.0.0.1', changes))
  } finally {
    await client.close()
  }
}
