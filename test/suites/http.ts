import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import type { HttpClient, HttpOutcome, HttpRequest } from '../../connectors/http/types.ts'

/** What an adapter is tried against: a web that has the five pages named here. */
export interface HttpSuiteWeb {
  /** URL of `/hello` (200, text/html, "hello"), `/gone` (404), `/moved` (301 to /hello), `/image` (image/png). */
  readonly origin: string
  readonly address: string
  /** Address and URL where nobody listens. */
  readonly deaf: { readonly origin: string; readonly address: string }
  /** Sends one request and lets time pass until its outcome is there. */
  run(request: HttpRequest): Promise<HttpOutcome>
  client: HttpClient
  close(): Promise<void>
}

export type HttpResponse = Extract<HttpOutcome, { kind: 'response' }>
export type HttpFailure = Extract<HttpOutcome, { kind: 'error' }>

export function request(url: string, address: string, changes: Partial<HttpRequest> = {}): HttpRequest {
  return {
    url,
    address,
    headers: [['user-agent', 'weir-test']],
    maxBodyBytes: 1024 * 1024,
    connectTimeoutMs: 2_000,
    headersTimeoutMs: 2_000,
    totalTimeoutMs: 4_000,
    minBytesPerSec: 1,
    accepts: () => true,
    mayStart: () => true,
    ...changes,
  }
}

export function asResponse(outcome: HttpOutcome): HttpResponse {
  assert.equal(outcome.kind, 'response', JSON.stringify(outcome))
  return outcome as HttpResponse
}

export function asFailure(outcome: HttpOutcome): HttpFailure {
  assert.equal(outcome.kind, 'error', JSON.stringify(outcome))
  return outcome as HttpFailure
}

/** What every HttpClient keeps. */
export function httpClientSuite(name: string, open: () => Promise<HttpSuiteWeb>): void {
  describe(`HttpClient: ${name}`, async () => {
    const web = await open()
    after(() => web.close())
    const get = (path: string, changes?: Partial<HttpRequest>) =>
      web.run(request(web.origin + path, web.address, changes))

    test('a response has its status, headers, bytes and times', async () => {
      const response = asResponse(await get('/hello'))
      assert.equal(response.status, 200)
      assert.equal(response.body.toString(), 'hello')
      assert.equal(response.truncated, 'none')
      assert.equal(response.bodyError, null)
      const type = response.headers.find(([field]) => field.toLowerCase() === 'content-type')
      assert.match(type?.[1] ?? '', /^text\/html/)
      const { times } = response
      assert.ok(times.startedAtMs > 0 && times.endedAtMs >= times.startedAtMs)
      assert.ok(times.endedMonotonicMs >= times.startedMonotonicMs + times.headersMs)
      assert.match(
        response.requestHead.toString('latin1'),
        /^GET \/hello HTTP\/1\.1\r\n(?:.+\r\n)*user-agent: weir-test\r\n/i,
      )
    })

    test('a redirect is an outcome', async () => {
      const response = asResponse(await get('/moved'))
      assert.equal(response.status, 301)
      assert.ok(
        response.headers.some(([field, value]) => field.toLowerCase() === 'location' && value.endsWith('/hello')),
      )
    })

    test('an error status is a response', async () => {
      assert.equal(asResponse(await get('/gone')).status, 404)
    })

    test('mayStart decides: false writes nothing', async () => {
      assert.deepEqual(await get('/hello', { mayStart: () => false }), {
        kind: 'not-started',
      })
      assert.equal(asResponse(await get('/hello')).status, 200)
    })

    test('a type that is not wanted has no body', async () => {
      const response = asResponse(await get('/image', { accepts: (type) => type !== 'image/png' }))
      assert.equal(response.truncated, 'type')
      assert.equal(response.body.length, 0)
    })

    test('the cap cuts the body', async () => {
      const response = asResponse(await get('/hello', { maxBodyBytes: 3 }))
      assert.equal(response.truncated, 'length')
      assert.equal(response.body.toString(), 'hel')
    })

    test('nobody listens: refused, nothing written', async () => {
      const failed = asFailure(await web.run(request(`${web.deaf.origin}/`, web.deaf.address)))
      assert.equal(failed.error, 'refused')
      assert.equal(failed.written, false)
      assert.equal(failed.times.startedAtMs, 0)
    })

    test('done is never called from within request', async () => {
      let within = true
      await new Promise<void>((resolve) => {
        const called = (): void => {
          assert.equal(within, false)
          resolve()
        }
        web.client.request(request('nonsense:', web.address), called)
        within = false
      })
    })
  })
}
