import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import { request } from 'undici'
import { checkRobots, parseRobots } from '../../processors/robots.ts'
import { CommandError, usageError } from '../errors.ts'
import type { Output } from './output.ts'

const maxRobotsBytes = 512 * 1024

export function robotsCommand(output: Output): Command {
  return new Command('robots')
    .description('Says what a robots.txt (a file, a URL, or - for standard input) means for an agent and URLs.')
    .argument('<file|url>', 'the robots.txt')
    .argument('<urls...>', 'URLs or paths to judge')
    .requiredOption('--agent <token>', 'product token, as in the User-Agent')
    .option('--json', 'one JSON object a URL: {url, allowed, line, rule}')
    .addHelpText('after', '\nExample:\n  $ weir robots robots.txt --agent weir /private/x https://example.org/\n')
    .action(async (source: string, urls: string[], options: { agent: string; json?: boolean }) => {
      const rules = parseRobots(await readRobots(source), options.agent)
      for (const url of urls) {
        const verdict = checkRobots(rules, absolute(url, source))
        if (options.json === true) output.data(JSON.stringify({ url, ...verdict }))
        else {
          const why = verdict.rule === null ? 'no rule matches' : `line ${verdict.line}: ${verdict.rule}`
          output.data(`${verdict.allowed ? 'allowed   ' : 'disallowed'} ${url}  (${why})`)
        }
      }
    })
}

async function readRobots(source: string): Promise<Uint8Array> {
  if (!/^https?:\/\//i.test(source)) {
    try {
      return readFileSync(source === '-' ? 0 : source)
    } catch (error) {
      throw new CommandError('read', 1, `reading ${source}: ${(error as Error).message}`, { cause: error })
    }
  }
  try {
    const { statusCode, body } = await request(source, { headersTimeout: 20_000, bodyTimeout: 20_000 })
    const chunks: Buffer[] = []
    let bytes = 0
    for await (const chunk of body as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes >= maxRobotsBytes) break
    }
    if (statusCode >= 400 && statusCode < 500 && statusCode !== 429) return new Uint8Array(0)
    if (statusCode !== 200) throw new Error(`HTTP ${statusCode}`)
    return Buffer.concat(chunks).subarray(0, maxRobotsBytes)
  } catch (error) {
    throw new CommandError('read', 1, `fetching ${source}: ${(error as Error).message}`, { cause: error })
  }
}

function absolute(url: string, source: string): string {
  const base = /^https?:\/\//i.test(source) ? source : 'http://localhost/'
  if (!URL.canParse(url, base)) throw usageError(`judging "${url}": it is no URL and no path`)
  return new URL(url, base).href
}
