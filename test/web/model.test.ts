import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { pageLinks } from '../integration/support/links.ts'
import { createWebModel, type WebModel, type WebOptions } from './model.ts'
import type { ResponsePlan } from './respond.ts'

const small: WebOptions = {
  seed: 11,
  hosts: 12,
  pagesPerHost: 25,
  pageBytes: 2_000,
  faults: false,
}
const startMs = Date.UTC(2026, 0, 1)

test('the same seed gives the same bytes, another seed gives others', () => {
  const digest = (options: WebOptions): string => {
    const model = createWebModel(options)
    const state = model.createState(startMs)
    const hash = createHash('sha256')
    for (const host of model.hosts) {
      for (const path of ['/robots.txt', ...model.site(host)!.pages.keys()]) {
        const { body, ...head } = ask(model, host, path, state)
        hash.update(`${host} ${path} ${JSON.stringify(head)}`).update(body)
      }
    }
    return hash.digest('hex')
  }
  const faulty = { ...small, faults: true }
  assert.equal(digest(small), digest(small))
  assert.equal(digest(faulty), digest(faulty))
  assert.notEqual(digest(small), digest({ ...small, seed: 12 }))
  assert.notEqual(digest(small), digest(faulty))
})

for (const options of [
  small,
  { ...small, seed: 12, port: 8_080 },
  { ...small, seed: 13, hosts: 40, pagesPerHost: 6, hostsPerSite: 3 },
  { ...small, seed: 14, hosts: 1, pagesPerHost: 1 },
  { ...small, seed: 15, hosts: 2, pagesPerHost: 400, pageBytes: 9_000 },
]) {
  test(`a walk over the HTML finds exactly the allowed pages: ${JSON.stringify(options)}`, () => {
    const model = createWebModel(options)
    assert.deepEqual(walkHtml(model, model.seeds()), [...model.allowedPages().keys()].sort())
    const one = model.seeds().slice(0, 1)
    const reached = model.allowedPages({ seeds: one })
    assert.deepEqual(walkHtml(model, one), [...reached.keys()].sort())
    assert.ok(Math.max(...reached.values()) <= 9, 'every page is at most nine links away')
    for (const url of reached.keys()) assert.equal(new URL(url).href, url)
  })
}

test('scope host keeps to the hosts of the seeds', () => {
  const model = createWebModel(small)
  const seed = model.seeds()[0]!
  const urls = [...model.allowedPages({ seeds: [seed], scope: 'host' }).keys()]
  assert.ok(urls.length > 5)
  assert.ok(urls.every((url) => url.startsWith(seed)))
})

test('the outcome mix is a web: mostly 200, then redirects, some missing pages, some forbidden ones', () => {
  const model = createWebModel({ ...small, hosts: 60 })
  const counts = new Map<string, number>()
  let total = 0
  for (const host of model.hosts) {
    for (const page of model.site(host)!.pages.values()) {
      const kind = page.disallowed ? 'disallowed' : page.kind
      counts.set(kind, (counts.get(kind) ?? 0) + 1)
      total++
    }
  }
  const share = (kind: string): number => (counts.get(kind) ?? 0) / total
  assert.ok(share('page') > 0.7 && share('page') < 0.9, `pages ${share('page')}`)
  assert.ok(share('redirect') > 0.06 && share('redirect') < 0.15, `redirects ${share('redirect')}`)
  assert.ok(share('missing') > 0.02 && share('missing') < 0.06, `missing ${share('missing')}`)
  assert.ok(share('disallowed') > 0.02 && share('disallowed') < 0.12, `disallowed ${share('disallowed')}`)
})

test('robots.txt comes in its kinds, and forbidden pages are linked from allowed ones', () => {
  const model = createWebModel({ ...small, hosts: 100, pagesPerHost: 8 })
  const plans = model.hosts.map((host) => model.site(host)!.robots)
  for (const status of [200, 403, 404]) assert.ok(plans.some((plan) => plan.status === status))
  assert.ok(plans.some((plan) => plan.path !== '/robots.txt'))
  assert.ok(plans.some((plan) => plan.closed))
  assert.ok(plans.some((plan) => plan.crawlDelayMs > 0))
  const forbidden = model.disallowedPages()
  const linked = new Set<string>()
  const state = model.createState(startMs)
  for (const url of model.allowedPages().keys()) {
    const { hostname, pathname, search } = new URL(url)
    const html = String(ask(model, hostname, pathname + search, state).body)
    for (const link of pageLinks(html, url)) if (forbidden.has(link)) linked.add(link)
  }
  assert.ok(linked.size > 20, `${linked.size} forbidden pages are linked`)
  for (const url of model.allowedPages().keys()) assert.ok(!forbidden.has(url))
})

test('faults pass: asked a few times, every allowed page and robots.txt is had', () => {
  const model = createWebModel({ ...small, hosts: 40, faults: true })
  const state = model.createState(startMs)
  let failures = 0
  const settled = (host: string, path: string): ResponsePlan => {
    for (let attempt = 0; attempt < 3; attempt++) {
      const plan = ask(model, host, path, state)
      if (plan.reset === null && plan.bodyDurationMs < 60_000 && plan.status < 429) return plan
      failures++
      if (plan.retryAfterMs !== null) assert.ok(plan.retryAfterMs > 0 && plan.retryAfterMs <= 122_000)
    }
    assert.fail(`${host}${path} does not recover`)
  }
  for (const url of model.allowedPages().keys()) {
    const { hostname, pathname, search } = new URL(url)
    assert.equal(settled(hostname, pathname + search).status, 200)
  }
  for (const host of model.hosts) settled(host, model.robotsPath(host))
  assert.ok(failures > 20, `${failures} failures on the way`)

  let errors = 0
  for (const host of model.hosts) {
    for (let query = 0; model.resolve(host, state).result.kind === 'error'; query++) {
      assert.ok(query < 3, `${host} does not resolve`)
      errors++
    }
    assert.ok(model.isUp(host, startMs + 3_600_000, state))
  }
  assert.ok(errors > 0)
  assert.ok(model.hosts.some((host) => minutes(20).some((at) => !model.isUp(host, at, state))))
  assert.equal(model.resolve('nobody.localhost', state).result.kind, 'error')
})

test('Retry-After comes in both forms and says when', () => {
  const model = createWebModel({ ...small, faults: { pageStatus: 1 } })
  const state = model.createState(startMs)
  const forms = { seconds: 0, date: 0 }
  for (const url of model.allowedPages().keys()) {
    const { hostname, pathname, search } = new URL(url)
    const plan = ask(model, hostname, pathname + search, state)
    const value = plan.headers.find(([name]) => name === 'retry-after')?.[1]
    if (value === undefined) continue
    const asked = /^\d+$/.test(value)
      ? Number(value) * 1_000
      : Date.parse(value) - (startMs + plan.delayBeforeHeadersMs)
    assert.equal(asked, plan.retryAfterMs)
    forms[/^\d+$/.test(value) ? 'seconds' : 'date']++
  }
  assert.ok(forms.seconds > 10 && forms.date > 10, JSON.stringify(forms))
})

test('a duplicate has the bytes of its original, a near-duplicate almost, other pages do not', () => {
  const model = createWebModel({ ...small, hosts: 4, pagesPerHost: 100 })
  const state = model.createState(startMs)
  let same = 0
  let near = 0
  for (const host of model.hosts) {
    for (const page of model.site(host)!.pages.values()) {
      if (page.kind !== 'page' || page.textOf === page.path) continue
      const own = String(ask(model, host, page.path, state).body)
      const original = String(ask(model, host, page.textOf, state).body)
      if (page.editEvery === 0) {
        assert.equal(own, original)
        same++
      } else {
        const words = own.split(' ')
        const kept = original.split(' ').filter((word, i) => word === words[i]).length
        assert.ok(kept < words.length && kept > words.length * 0.9, `${kept} of ${words.length}`)
        near++
      }
    }
  }
  assert.ok(same > 3 && near > 3)
  const home = String(ask(model, model.hosts[1]!, '/', state).body)
  assert.notEqual(home, String(ask(model, model.hosts[2]!, '/', state).body))
})

test('pages change when asked to, and say so by their ETag', () => {
  const model = createWebModel({
    ...small,
    hosts: 2,
    changeIntervalMs: 3_600_000,
  })
  const state = model.createState(startMs)
  let changed = 0
  let kept = 0
  for (const url of model.allowedPages().keys()) {
    const { hostname: host, pathname, search } = new URL(url)
    const first = ask(model, host, pathname + search, state)
    const etag = first.headers.find(([name]) => name === 'etag')![1]
    const header = (name: string): string | undefined => (name === 'if-none-match' ? etag : undefined)
    const later = {
      method: 'GET',
      host,
      path: pathname + search,
      header,
      nowMs: startMs + 2 * 3_600_000,
    }
    const second = model.respond(later, state)
    if (second.status === 304) kept++
    else {
      assert.equal(second.status, 200)
      assert.notDeepEqual(second.body, first.body)
      changed++
    }
  }
  assert.ok(changed > 5 && kept > 5, `${changed} changed, ${kept} kept`)
})

function ask(model: WebModel, host: string, path: string, state: ReturnType<WebModel['createState']>): ResponsePlan {
  return model.respond({ method: 'GET', host, path, header: () => undefined, nowMs: startMs }, state)
}

function minutes(count: number): number[] {
  return Array.from({ length: count }, (_, i) => startMs + i * 60_000)
}

/** What a crawler that knows which URLs are forbidden finds by reading pages. */
function walkHtml(model: WebModel, seeds: readonly string[]): string[] {
  const forbidden = model.disallowedPages()
  const hosts = new Set(model.hosts)
  const state = model.createState(startMs)
  const seen = new Set(seeds)
  const found: string[] = []
  for (const url of seen) {
    const { hostname, pathname, search } = new URL(url)
    if (forbidden.has(url) || !hosts.has(hostname)) continue
    const plan = ask(model, hostname, pathname + search, state)
    const header = (name: string): string => plan.headers.find(([n]) => n === name)?.[1] ?? ''
    if (plan.status >= 300 && plan.status < 400) seen.add(new URL(header('location'), url).href)
    if (plan.status !== 200 || !header('content-type').startsWith('text/html')) continue
    found.push(url)
    for (const link of pageLinks(String(plan.body), url)) seen.add(link)
  }
  return found.sort()
}
