import net from 'node:net'
import tls from 'node:tls'
import { HttpFailure, httpError, messageOf } from './errors.ts'
import { type ResponseTap, tapResponses } from './tap.ts'

export interface ConnectOptions {
  readonly address: string
  readonly port: number
  /** Null: plain TCP. */
  readonly tls: {
    readonly servername: string
    readonly ca: string | undefined
  } | null
}

export interface Connector {
  /** `done` once, unless `abort` was called before. Errors are HttpFailures. */
  connect(done: (error: HttpFailure | null, socket: net.Socket | null) => void): void
  /** Ends a connection attempt that is under way. */
  abort(): void
  /** Of the last socket that was opened. */
  tap(): ResponseTap | null
}

/**
 * Opens sockets to exactly one address; nothing is looked up. TLS checks the certificate for the URL's host name and
 * resumes sessions.
 */
export function createConnector({ address, port, tls: secure }: ConnectOptions): Connector {
  // Node's types do not know that the options of the stream are taken too.
  const tcpOptions: net.NetConnectOpts & { highWaterMark: number } = {
    host: address,
    port,
    noDelay: true,
    highWaterMark: 64 * 1024,
  }
  let session: Buffer | undefined
  let pending: net.Socket | null = null
  let tap: ResponseTap | null = null

  return {
    connect(done) {
      let phase: 'tcp' | 'tls' = 'tcp'
      const tcp: net.Socket = net.connect(tcpOptions)
      let socket = tcp
      tcp.once('connect', () => {
        phase = 'tls'
      })
      if (secure !== null) {
        socket = tls.connect({
          socket: tcp,
          host: address,
          // No SNI for addresses (RFC 6066 §3); the certificate is then checked against `host`.
          servername: net.isIP(secure.servername) === 0 ? secure.servername : '',
          ALPNProtocols: ['http/1.1'],
          ...(secure.ca === undefined ? {} : { ca: secure.ca }),
          ...(session === undefined ? {} : { session }),
        })
        socket.on('session', (fresh: Buffer) => {
          session = fresh
        })
        // tls.connect({ socket }) does not pass the inner socket's error on in every Node version.
        tcp.on('error', fail)
      }
      pending = socket

      function settle(): boolean {
        if (pending !== socket) return false
        pending = null
        return true
      }
      function fail(error: unknown): void {
        if (!settle()) return
        socket.destroy()
        done(
          new HttpFailure(httpError(error, phase), `connecting to ${address} port ${port}: ${messageOf(error)}`),
          null,
        )
      }
      socket.on('error', fail)
      socket.once('close', () => fail(new HttpFailure('reset', 'closed')))
      socket.once(secure === null ? 'connect' : 'secureConnect', () => {
        if (!settle()) return
        tap = tapResponses(socket)
        done(null, socket)
      })
    },
    abort() {
      const socket = pending
      pending = null
      socket?.destroy()
    },
    tap: () => tap,
  }
}
