import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import { request } from 'undici'
import { checkRobots, maxRobotsBytes, parseRobots } from '../../processors/robots.ts'
import { CommandError, usageError } from '../errors.ts'
import type { Output } from './output.ts'

/** RFC 9309 section 2.3.1.2: at least five. */
const maxRedirects = 5
const timeoutMs = 20_000

export function robotsCommand(output: Output): Command {
  return new Command('robots')
    .description('Says what a robots.txt (a file, a URL, or - for standard input) means for an agent and URLs.')
    .argument('<file|url>', 'the robots.txt')
    .argument('<urls...>', 'absolute URLs, or paths from "/" on, judged as they are spelled')
    .requiredOption('--agent <token>', 'product token, as in the User-Agent')
    .option('--json', 'one JSON object a URL: {url, allowed, line, rule}')
    .addHelpText(
      'after',
      `
The verdict never sets the exit code.

Examples:
  $ weir robots robots.txt --agent weir /private/x https://example.org/
  $ weir robots https://example.org/robots.txt --agent weir /private/x --json
`,
    )
    .action(async (source: string, urls: string[], options: { agent: string; json?: boolean }) => {
      const token = /^[A-Za-z_-]+/.exec(options.agent)?.[0]
      if (token === undefined) {
        throw usageError(`--agent: a product token begins with letters, "_" or "-", not "${options.agent}"`)
      }
      for (const url of urls) {
        if (!url.startsWith('/') && !/^https?:\/\//i.test(url)) {
          throw usageError(`judging "${url}": it is no absolute URL, and no path (which begins with "/")`)
        }
      }
      const rules = parseRobots(await readRobots(source), token)
      for (const url of urls) {
        const { allowed, line, rule } = checkRobots(rules, url)
        if (options.json === true) output.data(JSON.stringify({ url, allowed, line, rule }))
        else {
          const why = rule === null ? 'no rule matches' : `line ${line}: ${rule}`
          output.data(`${allowed ? 'allowed   ' : 'disallowed'} ${url}  (${why})`)
        }
      }
    })
}

async function readRobots(source: string): Promise<Uint8Array> {
  if (/^https?:\/\//i.test(source)) return fetchRobots(source, maxRedirects)
  try {
    return readFileSync(source === '-' ? 0 : source).subarray(0, maxRobotsBytes)
  } catch (error) {
    throw new CommandError('read', 1, `reading ${source}: ${(error as Error).message}`, { cause: error })
  }
}

async function fetchRobots(url: string, redirectsLeft: number): Promise<Uint8Array> {
  const failed = (why: string, cause?: unknown) =>
    new CommandError('read', 1, `fetching ${url}: ${why}; until it can be read, a crawl asks for nothing there`, {
      cause,
    })
  let status: number
  let location: string | string[] | undefined
  const chunks: Buffer[] = []
  try {
    const response = await request(url, { headersTimeout: timeoutMs, bodyTimeout: timeoutMs })
    status = response.statusCode
    location = response.headers.location
    let bytes = 0
    for await (const chunk of response.body as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes >= maxRobotsBytes) break
    }
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException
    throw failed(message || String(code), error)
  }
  if (status === 200) return Buffer.concat(chunks).subarray(0, maxRobotsBytes)
  // RFC 9309 section 2.3.1.3: no rules. 429 asks to slow down, which is no answer.
  if (status >= 400 && status < 500 && status !== 429) return new Uint8Array(0)
  const target = typeof location === 'string' ? URL.parse(location, url) : null
  if (status < 300 || status >= 400 || target === null) throw failed(`HTTP ${status}`)
  if (redirectsLeft === 0) throw failed(`more than ${maxRedirects} redirects`)
  return fetchRobots(target.href, redirectsLeft - 1)
}
