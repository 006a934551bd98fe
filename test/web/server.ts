import type { RequestListener, ServerResponse } from 'node:http'
import { parseArgs } from 'node:util'
import type { WebRequest } from './log.ts'
import { createWebModel, type WebModel, type WebOptions } from './model.ts'
import type { ResponsePlan } from './respond.ts'
import {
  hostOf,
  type Listening,
  listen,
  loopbackAddresses,
  record,
  serveProcess,
  stampMs,
  wholeNumber,
} from './serve.ts'

const usage = `Serves a simulated web on loopback until SIGTERM or idleness; hosts are told apart by the Host header.
node test/web/server.ts --seed S --hosts N --pages M --bytes B [--faults] [--gzip] [--latency-ms L]
  [--addresses K] [--port P] [--idle-s N]
`

/** A simulated web as real servers in this process: one port on each of the model's addresses. */
export async function startWebServer(
  options: WebOptions,
): Promise<Listening & { readonly model: WebModel; readonly log: readonly WebRequest[] }> {
  const log: WebRequest[] = []
  let listener: RequestListener = (_request, response) => response.destroy()
  const addresses = options.addresses ?? ['127.0.0.1']
  // The model needs the port, which the system may choose: hence the detour.
  const listening = await listen((request, response) => listener(request, response), addresses, options.port)
  const model = createWebModel({ ...options, port: listening.port })
  listener = createWebListener(model, log)
  return { ...listening, model, log }
}

function createWebListener(model: WebModel, log: WebRequest[]): RequestListener {
  const state = model.createState(stampMs())
  return (request, response) => {
    const entry = record(log, request, response)
    const host = hostOf(request)
    const nowMs = entry.startMs
    // One port serves all hosts: one that is down cannot refuse a connection, but it can break it.
    if (!model.isUp(host, nowMs, state)) {
      breakConnection(response)
      return
    }
    const header = (name: string): string | undefined => {
      const value = request.headers[name]
      return Array.isArray(value) ? value.join(', ') : value
    }
    const plan = model.respond(
      {
        method: request.method ?? 'GET',
        host,
        path: entry.path,
        header,
        nowMs,
      },
      state,
    )
    if (plan.delayBeforeHeadersMs < 1) send(plan, request.method === 'HEAD', response, entry)
    else setTimeout(() => send(plan, request.method === 'HEAD', response, entry), plan.delayBeforeHeadersMs)
  }
}

function send(plan: ResponsePlan, headOnly: boolean, response: ServerResponse, entry: WebRequest): void {
  if (response.destroyed) return
  if (plan.reset === 'before-headers') {
    breakConnection(response)
    return
  }
  entry.status = plan.status
  entry.retryAfterMs = plan.retryAfterMs
  response.sendDate = false
  response.writeHead(plan.status, plan.headers.flat() as string[])
  if (headOnly || plan.status === 304) {
    response.end()
    return
  }
  const end = plan.reset === 'mid-body' ? Math.floor(plan.body.length / 2) : plan.body.length
  const finish = (): void => {
    if (plan.reset === 'mid-body') breakConnection(response)
    else response.end()
  }
  // What takes no longer than a timer's grain is sent at once.
  const steps = Math.max(1, Math.min(100, Math.floor(plan.bodyDurationMs / 20)))
  let sent = 0
  const step = (n: number): void => {
    if (response.destroyed) return
    const until = Math.floor((end * n) / steps)
    response.write(plan.body.subarray(sent, until))
    sent = until
    if (n < steps) setTimeout(step, plan.bodyDurationMs / steps, n + 1)
    else if (plan.reset === 'mid-body') setTimeout(finish, 20)
    else finish()
  }
  step(1)
}

function breakConnection(response: ServerResponse): void {
  if (response.socket === null) response.destroy()
  else response.socket.resetAndDestroy()
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      seed: { type: 'string' },
      hosts: { type: 'string' },
      pages: { type: 'string' },
      bytes: { type: 'string' },
      faults: { type: 'boolean', default: false },
      gzip: { type: 'boolean', default: false },
      'latency-ms': { type: 'string' },
      addresses: { type: 'string' },
      port: { type: 'string' },
      'idle-s': { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    process.stdout.write(usage)
    process.exit(0)
  }
  const options: WebOptions = {
    seed: wholeNumber('seed', values.seed, 1),
    hosts: wholeNumber('hosts', values.hosts, 10),
    pagesPerHost: wholeNumber('pages', values.pages, 20),
    pageBytes: wholeNumber('bytes', values.bytes, 10_000),
    faults: values.faults,
    gzip: values.gzip,
    latencyMs: wholeNumber('latency-ms', values['latency-ms'], 0),
    addresses: loopbackAddresses(wholeNumber('addresses', values.addresses, 1)),
    port: wholeNumber('port', values.port, 0),
  }
  const server = await startWebServer(options)
  await serveProcess(server, {
    log: server.log,
    expected: server.model.allowedPages().keys().toArray(),
    about: { options: server.model.options },
    idleMs: 1_000 * wholeNumber('idle-s', values['idle-s'], 600),
  })
}
