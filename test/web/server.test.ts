import assert from 'node:assert/strict'
import { request } from 'node:http'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startNode } from '../integration/support/process.ts'
import { walkSite } from '../integration/support/walk.ts'
import { judge, staticFacts, type WebRequest } from './log.ts'
import { createWebModel } from './model.ts'
import { startWebServer } from './server.ts'

const script = new URL('server.ts', import.meta.url).pathname
const options = {
  seed: 3,
  hosts: 6,
  pagesPerHost: 20,
  pageBytes: 3_000,
  faults: false,
  latencyMs: 0,
}

test('the servers give the bytes, the status and the headers that the model says', async (t) => {
  const server = await startWebServer(options)
  t.after(() => server.close())
  const model = createWebModel({ ...options, port: server.port })
  const state = model.createState(0)
  let pages = 0
  for (const host of model.hosts.slice(0, 3)) {
    for (const path of ['/robots.txt', ...model.site(host)!.pages.keys()]) {
      const plan = model.respond({ method: 'GET', host, path, header: () => undefined, nowMs: 0 }, state)
      const answer = await get(server.port, host, path)
      assert.equal(answer.status, plan.status)
      assert.deepEqual(answer.body, plan.body, `${host}${path}`)
      for (const name of ['content-type', 'content-length', 'location', 'etag']) {
        assert.equal(answer.header(name), plan.headers.find(([n]) => n === name)?.[1], `${name} of ${host}${path}`)
      }
      pages++
    }
  }
  assert.equal(server.log.length, pages)
  for (const entry of server.log) {
    assert.ok(entry.complete && entry.endMs !== null && entry.endMs >= entry.startMs && entry.remotePort! > 0)
  }
})

test('the independent walk over real HTTP finds every page of an open host, and the judge counts each once', async (t) => {
  const server = await startWebServer({ ...options, hosts: 20, latencyMs: 5 })
  t.after(() => server.close())
  const { model } = server
  const host = model.hosts.find((name) => model.site(name)!.robots.status !== 200)!
  const origin = `http://${host}:${server.port}`
  const walked = await walkSite(`${origin}/`, { keepBodies: true })
  const expected = [...model.allowedPages({ seeds: [`${origin}/`], scope: 'host' }).keys()]
  assert.deepEqual([...walked.pages].sort(), expected.sort())
  assert.deepEqual([...walked.bodies.keys()].sort(), expected.sort())
  const byKind = (kind: string): string[] =>
    [...model.site(host)!.pages.values()].filter((page) => page.kind === kind).map((page) => origin + page.path)
  assert.deepEqual([...walked.redirects.keys()].sort(), byKind('redirect').sort())
  assert.deepEqual([...walked.missing].sort(), byKind('missing').sort())
  assert.deepEqual([...walked.others].sort(), byKind('file').sort())
  assert.equal(walked.failed.size, 0)

  const verdict = judge(server.log, staticFacts(origin, expected), {
    minDelayMs: 0,
  })
  assert.equal(verdict.pagesOnce, expected.length)
  assert.ok(verdict.overlaps.length > 0, 'eight connections at a time are not polite')
  assert.ok(verdict.beforeRobots.length > 0, 'the walk asks for no robots.txt')
})

test('resets and slow bodies are real', async (t) => {
  const server = await startWebServer({
    ...options,
    faults: { pageReset: 0.6, pageSlow: 0.4 },
  })
  t.after(() => server.close())
  const { model } = server
  const pick = (want: (fault: string) => boolean): [string, string] => {
    for (const host of model.hosts) {
      for (const page of model.site(host)!.pages.values()) {
        const fault = page.fault
        if (fault !== null && want(fault.kind === 'reset' ? fault.when : fault.kind)) return [host, page.path]
      }
    }
    assert.fail('no such fault')
  }
  const before = pick((fault) => fault === 'before-headers')
  await assert.rejects(get(server.port, ...before), { code: 'ECONNRESET' })
  const after = pick((fault) => fault === 'mid-body')
  await assert.rejects(get(server.port, ...after), { code: 'ECONNRESET' })
  await until(() => server.log.every((entry) => entry.endMs !== null))
  assert.deepEqual(
    server.log.map((entry) => [entry.status, entry.complete]),
    [
      [0, false],
      [200, false],
    ],
  )
  assert.equal((await get(server.port, ...before)).status, 200)
  assert.equal((await get(server.port, ...after)).status, 200)

  const abort = new AbortController()
  setTimeout(() => abort.abort(), 150)
  const slow = pick((fault) => fault === 'slow-body')
  await assert.rejects(get(server.port, ...slow, abort.signal))
  await until(() => server.log.every((entry) => entry.endMs !== null))
  const last = server.log.at(-1)!
  assert.ok(!last.complete && last.endMs! - last.startMs >= 100, 'open until the client went away')
})

test('as a process: ready line, hosts on several addresses, log and expected pages on the control port, SIGTERM', async (t) => {
  const args = ['--seed', '3', '--hosts', '6', '--pages', '20', '--bytes', '3000', '--addresses', '2']
  const child = startNode(t, script, args)
  const ready = JSON.parse(await child.ready) as {
    port: number
    control: number
    addresses: string[]
    pid: number
  }
  assert.equal(ready.pid, child.pid)
  assert.deepEqual(ready.addresses, ['127.0.0.1', '127.0.0.2'])

  const model = createWebModel({
    ...options,
    port: ready.port,
    addresses: ready.addresses,
  })
  const answer = await get(ready.port, 'h002.localhost', '/', undefined, '127.0.0.2')
  const page = model.respond(
    {
      method: 'GET',
      host: 'h002.localhost',
      path: '/',
      header: () => undefined,
      nowMs: 0,
    },
    model.createState(0),
  )
  assert.deepEqual(answer.body, page.body)

  const control = `http://127.0.0.1:${ready.control}`
  const log = (await (await fetch(`${control}/__web/log`)).text())
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as WebRequest)
  assert.equal(log.length, 1)
  assert.deepEqual([log[0]?.host, log[0]?.path, log[0]?.address], ['h002.localhost', '/', '127.0.0.2'])
  const expected = (await (await fetch(`${control}/__web/expected`)).text()).trimEnd().split('\n')
  assert.deepEqual(expected, [...model.allowedPages().keys()])
  assert.equal((await fetch(`${control}/other`)).status, 404)

  child.kill('SIGTERM')
  assert.deepEqual(await child.exit, { code: 0, signal: null })
})

test('a process that nobody asks anything ends by itself', async (t) => {
  const child = startNode(t, script, ['--hosts', '1', '--pages', '1', '--idle-s', '0'])
  await child.ready
  assert.deepEqual(await child.exit, { code: 0, signal: null })
})

test('a child that ends before it is ready says why', async (t) => {
  const child = startNode(t, script, ['--hosts', 'many'])
  await assert.rejects(child.ready, /reading --hosts: many is not a whole number/)
})

async function until(holds: () => boolean): Promise<void> {
  for (let i = 0; !holds(); i++) {
    assert.ok(i < 500, 'it never holds')
    await sleep(5)
  }
}

type Answer = {
  status: number
  body: Buffer
  header(name: string): string | undefined
}

function get(port: number, host: string, path: string, signal?: AbortSignal, address = '127.0.0.1'): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = { host: `${host}:${port}` }
    const options = {
      host: address,
      port,
      path,
      headers,
      agent: false,
      ...(signal === undefined ? {} : { signal }),
    }
    request(options, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          body: Buffer.concat(chunks),
          header: (name) => response.headers[name]?.toString(),
        }),
      )
    })
      .on('error', reject)
      .end()
  })
}
