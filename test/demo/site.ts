/**
 * The demo's web: three small hosts on one loopback port, told apart by the Host header, with what a crawler meets on real
 * ones: robots rules, redirects, a 404, a slow page, exact and near duplicates, and a calendar without an end.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface DemoWeb {
  readonly port: number
  readonly seeds: readonly string[]
  /** Requests answered so far. */
  requests(): number
  close(): Promise<void>
}

type Answer = { status: number; headers?: { [name: string]: string }; body: string; delayMs?: number }

export async function startDemoWeb(): Promise<DemoWeb> {
  let requests = 0
  const server = createServer((req, res) => {
    requests++
    const host = (req.headers.host ?? '').replace(/:\d+$/, '')
    const answer = sites[host]?.(req.url ?? '/') ?? missing
    setTimeout(() => {
      res.writeHead(answer.status, { 'content-type': 'text/html; charset=utf-8', ...answer.headers })
      res.end(answer.body)
    }, answer.delayMs ?? 0)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  return {
    port,
    seeds: Object.keys(sites).map((host) => `http://${host}:${port}/`),
    requests: () => requests,
    close: () =>
      new Promise((done) => {
        server.close(() => done())
        server.closeAllConnections()
      }),
  }
}

const sites: { readonly [host: string]: (path: string) => Answer } = {
  'shop.localhost': shop,
  'news.localhost': news,
  // The same paper under another name.
  'mirror.localhost': news,
}

const things = ['kettle', 'lantern', 'compass', 'hammock', 'whistle', 'tent', 'stove', 'rope', 'map', 'flask']

function shop(path: string): Answer {
  if (path === '/robots.txt') return text('User-agent: *\nDisallow: /cart\nAllow: /cart/help\n')
  if (path === '/') {
    const products = things.map((thing, i) => link(`/products/${i + 1}`, `The ${thing}`))
    return page('A small shop', 'Things for long walks.', [
      ...products,
      link('/cart', 'Your cart'),
      link('/cart/help', 'How to order'),
      link('/specials', 'Specials'),
      link('/gone', 'Last year'),
      link('/warehouse', 'The warehouse'),
      link('/calendar?month=1', 'Opening hours'),
    ])
  }
  const product = /^\/products\/(\d+)$/.exec(path)
  if (product !== null && things[Number(product[1]) - 1] !== undefined) {
    const thing = things[Number(product[1]) - 1]!
    const price = (7 + Number(product[1]) * 3.5).toFixed(2)
    return page(`The ${thing}`, `${story(thing)} <p>Price: <span class="price">${price} EUR</span></p>`, [
      link('/', 'Back'),
      link(`/products/${product[1]}?utm_source=list`, 'Share'),
    ])
  }
  if (path === '/specials') return { status: 301, headers: { location: '/products/3' }, body: '' }
  if (path === '/warehouse') return { ...page('The warehouse', story('warehouse'), []), delayMs: 300 }
  if (path === '/cart/help') return page('How to order', story('order'), [])
  const month = /^\/calendar\?month=(\d+)$/.exec(path)
  if (month !== null) {
    const next = Number(month[1]) + 1
    return page(`Month ${month[1]}`, 'Open every day.', [link(`/calendar?month=${next}`, 'Next month')])
  }
  return missing
}

function news(path: string): Answer {
  if (path === '/robots.txt') return text('User-agent: *\nDisallow: /drafts/\n')
  if (path === '/') {
    const articles = things.map((thing, i) => link(`/articles/${i + 1}`, `On the ${thing}`))
    return page('The walker', 'A paper for those on foot.', [...articles, link('/drafts/11', 'Soon')])
  }
  const article = /^\/(articles|print|archive)\/(\d+)$/.exec(path)
  const thing = things[Number(article?.[2]) - 1]
  if (article === null || thing === undefined) return missing
  // The printed page differs by a few words, the archive's by none.
  const ending = article[1] === 'print' ? '<p>Printed for you today.</p>' : ''
  return page(`On the ${thing}`, story(thing) + ending, [
    link(`/print/${article[2]}`, 'Print'),
    link(`/archive/${article[2]}`, 'Archive'),
  ])
}

/** Some hundred words that are about one thing. */
function story(thing: string): string {
  const parts = [
    `Nobody who has carried a ${thing} across the hills forgets the first evening with it.`,
    `The morning was grey, the path climbed between stone walls, and the ${thing} weighed more with every mile.`,
    `At noon we sat by a stream, shared bread and apples, and talked about what a good ${thing} should be.`,
    `It should last longer than its maker, an old shepherd told us; it should be mended with what lies at hand.`,
    `So we looked at the seams of the ${thing}, at its handle and its colour, and found nothing to complain about.`,
    `When the rain came in the afternoon the ${thing} proved its worth, and when the stars came out we praised it.`,
    `Since then no journey has begun without the ${thing}, and no shelf in the house is empty while it stands there.`,
  ]
  return parts.map((part) => `<p>${part}</p>`).join('\n')
}

function page(title: string, body: string, links: readonly string[]): Answer {
  const list = links.map((l) => `<li>${l}</li>`).join('')
  return {
    status: 200,
    body: `<!doctype html><html lang="en"><head><title>${title}</title></head><body><main><h1>${title}</h1>${body}</main><nav><ul>${list}</ul></nav></body></html>`,
  }
}

function link(href: string, label: string): string {
  return `<a href="${href}">${label}</a>`
}

function text(body: string): Answer {
  return { status: 200, headers: { 'content-type': 'text/plain' }, body }
}

const missing: Answer = { status: 404, body: '<title>Not here</title>' }
