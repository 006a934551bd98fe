import type { EventEmitter } from 'node:events'
import { isIP } from 'node:net'
import { Client } from 'undici'
import type { Clock } from '../clock/types.ts'
import { type Faults, noFaults } from '../faults/types.ts'
import { isPublicAddress } from './addresses.ts'
import { type Connector, createConnector } from './connect.ts'
import { createExchange } from './exchange.ts'
import type { HttpClient, HttpError, HttpOutcome, HttpRequest } from './types.ts'

export interface UndiciClientOptions {
  readonly clock: Clock
  /** Connections kept, one for each origin and address; the least recently used idle one goes first. */
  readonly maxOrigins?: number
  /** How long an idle connection is kept; a server's shorter `Keep-Alive: timeout` wins. */
  readonly keepAliveMs?: number
  /** Allows addresses that are not of the public internet. */
  readonly allowPrivate?: boolean
  readonly maxHeaderBytes?: number
  readonly maxHeaderCount?: number
  /** Over what time `minBytesPerSec` is measured. */
  readonly rateWindowMs?: number
  /** PEM certificates trusted instead of the system's. */
  readonly ca?: string
  readonly faults?: Faults
}

type Connection = {
  readonly key: string
  readonly client: Client
  readonly connector: Connector
  active: number
}

/**
 * HTTP/1.1 on undici: one connection an origin, nothing pipelined, followed, retried or looked up. A kept connection that
 * turns out dead before the request is written is replaced at once; after a byte was written nothing is sent again.
 */
export function createUndiciClient(options: UndiciClientOptions): HttpClient {
  const { clock, allowPrivate = false, maxOrigins = 4096, faults = noFaults } = options
  const { maxHeaderCount = 256, rateWindowMs = 10_000 } = options
  /** In order of last use. */
  const connections = new Map<string, Connection>()

  function connectionTo(url: URL, address: string): Connection {
    const key = `${url.origin} ${address}`
    const found = connections.get(key)
    if (found !== undefined) {
      connections.delete(key)
      connections.set(key, found)
      return found
    }
    evict()
    const opened = open(key, url, address, options)
    connections.set(key, opened)
    return opened
  }

  function evict(): void {
    for (const [key, connection] of connections) {
      if (connections.size < maxOrigins) return
      if (connection.active > 0) continue
      connections.delete(key)
      void connection.client.destroy()
    }
  }

  return {
    request(request, done) {
      const report = (outcome: HttpOutcome): void => {
        // A turn later: never within `request`, nor on undici's stack, which is not re-entrant and swallows what throws.
        queueMicrotask(() => done(outcome))
      }
      const url = URL.parse(request.url)
      const refused = refusal(url, request.address, allowPrivate)
      if (url === null || refused !== null) {
        report(refused === null ? error('protocol', 'no URL', clock) : error(refused.code, refused.message, clock))
        return { cancel() {} }
      }
      const connection = connectionTo(url, request.address)
      connection.active++
      const exchange = createExchange({
        clock,
        faults,
        request,
        requestHead: requestHead(url, request.headers),
        maxHeaderCount,
        rateWindowMs,
        tap: () => connection.connector.tap(),
        abandon(reason) {
          // Others may be using the connection: then this request is dropped when its turn comes.
          if (connection.active > 1) return
          if (connections.get(connection.key) === connection) connections.delete(connection.key)
          connection.connector.abort()
          void connection.client.destroy(reason)
        },
        done(outcome) {
          connection.active--
          report(outcome)
        },
      })
      connection.client.dispatch(
        {
          method: 'GET',
          path: url.pathname + url.search,
          headers: ['host', url.host, ...request.headers.flat()],
          headersTimeout: 0,
          bodyTimeout: 0,
        },
        exchange,
      )
      return { cancel: () => exchange.cancel() }
    },
    async close() {
      const open = [...connections.values()]
      connections.clear()
      for (const { connector } of open) connector.abort()
      await Promise.all(open.map(({ client }) => client.destroy()))
    },
  }
}

function refusal(url: URL | null, address: string, allowPrivate: boolean): { code: HttpError; message: string } | null {
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    return { code: 'protocol', message: 'not an http or https URL' }
  }
  if (isIP(address) === 0) return { code: 'address-refused', message: `${address} is not an address` }
  if (!allowPrivate && !isPublicAddress(address)) {
    return {
      code: 'address-refused',
      message: `${address} is not a public address`,
    }
  }
  return null
}

function error(code: HttpError, message: string, clock: Clock): HttpOutcome {
  const times = {
    startedAtMs: 0,
    endedAtMs: clock.nowMs(),
    startedMonotonicMs: 0,
    endedMonotonicMs: clock.monotonicMs(),
    headersMs: 0,
  }
  return { kind: 'error', error: code, message, written: false, times }
}

function open(key: string, url: URL, address: string, options: UndiciClientOptions): Connection {
  const secure = url.protocol === 'https:'
  const hostname = url.hostname.replace(/^\[|\]$/g, '')
  const connector = createConnector({
    address,
    port: url.port === '' ? (secure ? 443 : 80) : Number(url.port),
    tls: secure ? { servername: hostname, ca: options.ca } : null,
  })
  const keepAliveMs = options.keepAliveMs ?? 5_000
  const client = new Client(url.origin, {
    connect: (_unused, callback) =>
      connector.connect((failed, socket) => {
        if (failed === null) callback(null, socket!)
        else callback(failed, null)
      }),
    pipelining: 1,
    keepAliveTimeout: keepAliveMs,
    keepAliveMaxTimeout: keepAliveMs,
    keepAliveTimeoutThreshold: 500,
    maxHeaderSize: options.maxHeaderBytes ?? 64 * 1024,
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  // undici tells what breaks between requests here; the next request opens a new connection.
  const emitter: EventEmitter = client
  emitter.on('error', () => {})
  return { key, client, connector, active: 0 }
}

/** What undici writes for these arguments (its client-h1.js), byte for byte; a test holds it against a server. */
function requestHead(url: URL, headers: HttpRequest['headers']): Buffer {
  const connection = headers.find(([name]) => name === 'connection')?.[1] ?? 'keep-alive'
  const fields = headers.filter(([name]) => name !== 'connection').map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(
    `GET ${url.pathname}${url.search} HTTP/1.1\r\nhost: ${url.host}\r\nconnection: ${connection}\r\n${fields.join('')}\r\n`,
    'latin1',
  )
}
