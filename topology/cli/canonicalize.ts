import { createInterface } from 'node:readline'
import { Command } from 'commander'
import { canonicalizeUrl } from '../../processors/canonicalize/url.ts'
import type { Output } from './output.ts'

export function canonicalizeCommand(output: Output): Command {
  return new Command('canonicalize')
    .description('Reads URLs from standard input, a line each, and writes their canonical keys.')
    .option('--base <url>', 'what relative URLs resolve against')
    .option('--json', 'one JSON object a line: {input, key, fetchUrl, error}')
    .addHelpText(
      'after',
      "\nExample:\n  $ echo 'HTTP://Example.org:80/a/../b?z=1&a=2&utm_source=x#top' | weir canonicalize\n",
    )
    .action(async (options: { base?: string; json?: boolean }) => {
      const lines = createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY })
      let number = 0
      for await (const input of lines) {
        number++
        const result = canonicalizeUrl(input, options.base)
        if (options.json === true) {
          const failed = 'error' in result
          output.data(
            JSON.stringify({
              input,
              key: failed ? null : result.key,
              fetchUrl: failed ? null : result.fetchUrl,
              error: failed ? result.error.code : null,
            }),
          )
        } else if ('error' in result) {
          // Lines out match lines in: a refused one is empty.
          output.data('')
          output.message(`line ${number}: ${result.error.code}: ${result.error.message}`)
        } else output.data(result.key)
      }
    })
}
