import { createReadStream, type Stats, statSync } from 'node:fs'
import type { RequestListener } from 'node:http'
import { join, resolve, sep } from 'node:path'
import { parseArgs } from 'node:util'
import type { WebRequest } from './log.ts'
import { type Listening, listen, loopbackAddresses, record, serveProcess, wholeNumber } from './serve.ts'

const usage = `Serves a directory on loopback until SIGTERM or idleness.
node test/web/static-server.ts --root DIR [--port P] [--addresses K] [--robots TEXT]
  [--chunk-bytes N --chunk-delay-ms N] [--idle-s N]
`

const contentTypes: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  htm: 'text/html; charset=utf-8',
  css: 'text/css',
  js: 'text/javascript',
  json: 'application/json',
  xml: 'application/xml',
  txt: 'text/plain; charset=utf-8',
  py: 'text/x-python; charset=utf-8',
  png: 'image/png',
  gif: 'image/gif',
  jpg: 'image/jpeg',
  svg: 'image/svg+xml',
  pdf: 'application/pdf',
  gz: 'application/gzip',
}

export interface StaticOptions {
  readonly root: string
  /** Body of /robots.txt; null = what the directory has. */
  readonly robots: string | null
  /** Bodies are sent in pieces of this size with a pause between them, so that a kill meets one half-way. */
  readonly chunkBytes: number
  readonly chunkDelayMs: number
}

/** A server of a directory in this process. */
export async function startStaticServer(
  options: Partial<StaticOptions> & {
    root: string
    port?: number
    addresses?: readonly string[]
  },
): Promise<Listening & { readonly log: readonly WebRequest[] }> {
  const log: WebRequest[] = []
  const whole = {
    robots: null,
    chunkBytes: 16_384,
    chunkDelayMs: 0,
    ...options,
  }
  const listening = await listen(createStaticListener(whole, log), options.addresses ?? ['127.0.0.1'], options.port)
  return { ...listening, log }
}

function createStaticListener(options: StaticOptions, log: WebRequest[]): RequestListener {
  const root = resolve(options.root)
  return (request, response) => {
    record(log, request, response)
    const answer = (status: number, text: string, headers: Record<string, string> = {}): void => {
      response.writeHead(status, {
        'content-type': 'text/plain; charset=utf-8',
        'content-length': Buffer.byteLength(text),
        ...headers,
      })
      response.end(request.method === 'HEAD' ? undefined : text)
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      answer(405, 'Method Not Allowed\n', { allow: 'GET, HEAD' })
      return
    }
    const [rawPath = '/', query] = (request.url ?? '/').split(/\?(.*)/s, 2)
    if (rawPath === '/robots.txt' && options.robots !== null) {
      answer(200, options.robots)
      return
    }
    const path = filePath(root, rawPath)
    let stats = path === null ? null : statOf(path)
    if (path === null || stats === null) {
      answer(404, 'Not Found\n')
      return
    }
    let file = path
    if (stats.isDirectory()) {
      if (!rawPath.endsWith('/')) {
        answer(301, 'Moved\n', {
          location: `${rawPath}/${query === undefined ? '' : `?${query}`}`,
        })
        return
      }
      file = join(path, 'index.html')
      stats = statOf(file)
    } else if (rawPath.endsWith('/')) stats = null
    if (stats === null || !stats.isFile()) {
      answer(404, 'Not Found\n')
      return
    }

    const etag = `"${stats.size.toString(16)}-${Math.floor(stats.mtimeMs).toString(16)}"`
    response.setHeader('etag', etag)
    response.setHeader('last-modified', stats.mtime.toUTCString())
    if (isUnchanged(request.headers, etag, stats)) {
      response.writeHead(304)
      response.end()
      return
    }
    const extension = file.slice(file.lastIndexOf('.') + 1).toLowerCase()
    response.writeHead(200, {
      'content-type': contentTypes[extension] ?? 'application/octet-stream',
      'content-length': stats.size,
    })
    if (request.method === 'HEAD') response.end()
    else void sendFile(file, response, options)
  }
}

/** The file that a request path names; null where that is outside the root or no path at all. */
function filePath(root: string, rawPath: string): string | null {
  try {
    const path = resolve(root, `.${decodeURIComponent(rawPath)}`)
    return !path.includes('\0') && (path === root || path.startsWith(root + sep)) ? path : null
  } catch {
    return null
  }
}

function statOf(path: string): Stats | null {
  return statSync(path, { throwIfNoEntry: false }) ?? null
}

/** RFC 9110 section 13.2.2: If-None-Match, and only without it If-Modified-Since. */
function isUnchanged(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  etag: string,
  stats: Stats,
): boolean {
  const match = headers['if-none-match']
  if (typeof match === 'string')
    return match === '*' || match.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag)
  const since = headers['if-modified-since']
  return typeof since === 'string' && Math.floor(stats.mtimeMs / 1_000) * 1_000 <= Date.parse(since)
}

async function sendFile(file: string, response: Parameters<RequestListener>[1], options: StaticOptions): Promise<void> {
  try {
    let first = true
    for await (const chunk of createReadStream(file, { highWaterMark: options.chunkBytes })) {
      if (!first && options.chunkDelayMs > 0) await new Promise((go) => setTimeout(go, options.chunkDelayMs))
      first = false
      if (response.destroyed) return
      if (!response.write(chunk)) await new Promise<void>((go) => response.once('drain', go).once('close', go))
    }
    response.end()
  } catch {
    response.destroy()
  }
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      root: { type: 'string' },
      port: { type: 'string' },
      addresses: { type: 'string' },
      robots: { type: 'string' },
      'chunk-bytes': { type: 'string' },
      'chunk-delay-ms': { type: 'string' },
      'idle-s': { type: 'string' },
    },
  })
  if (values.root === undefined) {
    process.stderr.write(usage)
    process.exit(2)
  }
  const server = await startStaticServer({
    root: values.root,
    robots: values.robots ?? null,
    chunkBytes: wholeNumber('chunk-bytes', values['chunk-bytes'], 16_384),
    chunkDelayMs: wholeNumber('chunk-delay-ms', values['chunk-delay-ms'], 0),
    port: wholeNumber('port', values.port, 0),
    addresses: loopbackAddresses(wholeNumber('addresses', values.addresses, 1)),
  })
  const idleMs = 1_000 * wholeNumber('idle-s', values['idle-s'], 600)
  await serveProcess(server, {
    log: server.log,
    expected: null,
    about: { root: values.root },
    idleMs,
  })
}
