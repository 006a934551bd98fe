/**
 * `npm run demo`: a small web on loopback crawled through everything, then what one can ask. Each line that begins with
 * `$` is a command that you can type; its output is what it printed.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { startDemoWeb } from './site.ts'

const root = resolve(import.meta.dirname, '../..')
const print = (text: string) => void process.stdout.write(`${text}\n`)

const startedMs = performance.now()
const dir = mkdtempSync(join(tmpdir(), 'weir-demo-'))
const web = await startDemoWeb()
try {
  await demo()
} finally {
  await web.close()
  rmSync(dir, { recursive: true, force: true })
}

async function demo(): Promise<void> {
  const data = join(dir, 'data')
  const shop = `http://shop.localhost:${web.port}`

  print('A web of three small hosts, crawled with robots.txt, links, fingerprints, WARC, log and ClickHouse:\n')
  await weir(['crawl', ...web.seeds, '--allow-private', '--delay-ms', '50', '--data', data])
  const requests = web.requests()

  print('\nWhat became of all URLs, how fresh they are, what is there twice, and whether anybody was hurt:\n')
  for (const query of ['url-states', 'freshness', 'duplicates-by-host', 'politeness-audit']) {
    await weir(['query', query, '--data', data])
  }

  print('\nWhy a page was never asked for:\n')
  await weir(['explain', `${shop}/cart`, '--data', data])

  print('\nA stored page:\n')
  await weir(['get', `${shop}/products/3`, '--text', '--data', data])

  print('\nA column that nobody thought of, added from the stored pages:\n')
  const config = join(dir, 'weir.json')
  writeFileSync(config, JSON.stringify({ extract: { price: { css: '.price', hosts: ['shop.localhost'] } } }))
  print(`$ cat weir.json\n{"extract": {"price": {"css": ".price", "hosts": ["shop.localhost"]}}}`)
  await weir(['replay', 'parse', '--data', data, '--config', config, '--apply'])
  const sql =
    "SELECT url, extracted['price'][1] AS price FROM pages WHERE notEmpty(extracted['price']) ORDER BY url LIMIT 3"
  await weir(['sql', sql, '--data', data])

  const more = web.requests() - requests
  print(
    `\nRequests that all of this made after the crawl: ${more}. Time: ${((performance.now() - startedMs) / 1000).toFixed(0)} s.`,
  )
  print('Your own site: npx weir crawl https://example.org/ --contact you@example.org')
  if (more !== 0) throw new Error(`${more} requests were made after the crawl`)
}

/** Runs a command as a user would and shows it, with the temporary folder left out. */
async function weir(args: readonly string[]): Promise<void> {
  const shown = args.map((arg) => (/[^\w./:@=-]/.test(arg) ? `'${arg.replaceAll("'", "'\\''")}'` : arg)).join(' ')
  print(`$ npx weir ${shown.replaceAll(`${dir}/`, '')}`)
  const child = spawn(process.execPath, [join(root, 'topology/cli/weir.ts'), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const lines: string[] = []
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => lines.push(text.replaceAll(`${dir}/`, '')))
  }
  const code = await new Promise((done) => child.once('close', done))
  print(lines.join('').trimEnd())
  if (code !== 0) throw new Error(`weir ${args[0]} ended with ${code}`)
}
