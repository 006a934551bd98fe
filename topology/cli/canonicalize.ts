import { createInterface } from 'node:readline'
import { Command } from 'commander'
import { canonicalizeUrl } from '../../processors/canonicalize/url.ts'
import { usageError } from '../errors.ts'
import type { Output } from './output.ts'

export function canonicalizeCommand(output: Output): Command {
  return new Command('canonicalize')
    .description('Reads URLs from standard input, a line each, and writes their canonical keys.')
    .option('--base <url>', 'what relative URLs resolve against')
    .option('--json', 'one JSON object a line: {input, key, fetchUrl, error}')
    .addHelpText(
      'after',
      `
Lines out match lines in: what is no URL gives an empty line (and a message), or with --json its error code.

Example:
  $ echo 'HTTP://Example.org:80/a/../b?z=1&a=2&utm_source=x#top' | weir canonicalize
  http://example.org/b?a=2&z=1
`,
    )
    .action(async (options: { base?: string; json?: boolean }) => {
      if (options.base !== undefined && !URL.canParse(options.base)) {
        throw usageError(`--base: "${options.base}" is no absolute URL`)
      }
      const lines = createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY })
      let number = 0
      for await (const input of lines) {
        number++
        const result = canonicalizeUrl(input, options.base)
        const failed = 'error' in result
        if (options.json === true) {
          const [key, fetchUrl] = failed ? [null, null] : [result.key, result.fetchUrl]
          output.data(JSON.stringify({ input, key, fetchUrl, error: failed ? result.error.code : null }))
        } else {
          output.data(failed ? '' : result.key)
          if (failed) output.message(`line ${number}: ${result.error.code}: ${result.error.message}`)
        }
        await output.drained()
      }
    })
}
