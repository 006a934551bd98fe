import { join } from 'node:path'
import { Command } from 'commander'
import { readExchange } from '../../connectors/archive/file.ts'
import type { ArchivedRecord } from '../../connectors/archive/types.ts'
import { contentCodings, createBodyDecoder } from '../../connectors/http/decode.ts'
import { parsePage } from '../../processors/parse/page.ts'
import { iterateLinks } from '../../schemas/links.ts'
import { CommandError, usageError } from '../errors.ts'
import { addSettings, readSettings } from './options.ts'
import type { Output } from './output.ts'
import { ask } from './view.ts'

interface GetOptions {
  text?: boolean
  links?: boolean
  headers?: boolean
}

export function getCommand(output: Output): Command {
  const command = new Command('get')
    .description('The stored copy of a page: its last body, or its text, links or headers.')
    .argument('<url>')
    .option('--text', 'the main text')
    .option('--links', 'the links, absolute, one a line')
    .option('--headers', 'status line and headers as received')
    .addHelpText('after', '\nExample:\n  $ weir get https://example.org/ --text\n')
  addSettings(command, ['data', 'crawl'])
  return command.action(async (url: string, options: GetOptions) => {
    if ([options.text, options.links, options.headers].filter(Boolean).length > 1) {
      throw usageError('getting a page: give one of --text, --links and --headers')
    }
    const settings = readSettings(command)
    const { key, fetched } = await ask(settings, 'page', url)
    const record = await readExchange(join(settings.data, 'archive'), fetched.archive!)
    if (options.headers === true) {
      output.data(`HTTP ${record.status}`)
      for (const [name, value] of record.headers) output.data(`${name}: ${value}`)
      return
    }
    const body = await bodyOf(key, record, settings.maxBodyBytes)
    if (options.text !== true && options.links !== true) {
      process.stdout.write(body)
      return
    }
    const page = parsePage({
      url: fetched.url,
      contentType: fetched.contentType,
      headers: record.headers,
      body,
      agentToken: 'weir',
    })
    if (page === null) throw new CommandError('parse', 1, `parsing ${key}: no parser for ${fetched.contentType}`)
    if (options.text === true) {
      output.data(page.title === null ? page.text : `${page.title}\n\n${page.text}`)
      return
    }
    for (const { href } of iterateLinks(page.links)) {
      const target = URL.parse(href, page.baseUrl)
      if (target !== null) output.data(target.href)
    }
  })
}

/** The body with its content coding undone. */
function bodyOf(key: string, record: ArchivedRecord, maxBodyBytes: number): Promise<Buffer> {
  const fields = record.headers.filter(([name]) => name.toLowerCase() === 'content-encoding').map(([, value]) => value)
  const codings = contentCodings(fields)
  if (codings === null) throw new CommandError('coding', 1, `decoding ${key}: unknown coding ${fields.join(', ')}`)
  if (codings.length === 0) return Promise.resolve(record.rawBody)
  const decoder = createBodyDecoder(codings, maxBodyBytes, () => {})
  decoder.push(record.rawBody)
  return new Promise((resolve) => {
    decoder.end(true, ({ body }) => resolve(body))
  })
}
