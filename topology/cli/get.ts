import { join } from 'node:path'
import { Command } from 'commander'
import { readExchange } from '../../connectors/archive/file.ts'
import type { ArchivedRecord } from '../../connectors/archive/types.ts'
import { contentCodings, createBodyDecoder } from '../../connectors/http/decode.ts'
import { parsePage } from '../../processors/parse/page.ts'
import type { Fetched } from '../../schemas/types.ts'
import { CommandError, usageError } from '../errors.ts'
import { addSettings, readSettings } from './options.ts'
import type { Output } from './output.ts'
import { readLinks } from './parse.ts'
import { ask } from './view.ts'

interface GetOptions {
  text?: boolean
  links?: boolean
  headers?: boolean
  json?: boolean
}

export function getCommand(output: Output): Command {
  const command = new Command('get')
    .description('The stored copy of a page: its last body, or its text, links or headers.')
    .argument('<url>')
    .option('--text', 'the main text')
    .option('--links', 'the links, absolute, one a line')
    .option('--headers', 'status line and headers as received')
    .option('--json', 'one JSON object: {url, key, fetchId, fetchedAt, status, headers} and what was asked for')
    .addHelpText(
      'after',
      '\nExamples:\n  $ weir get https://example.org/ > page.html\n  $ weir get https://example.org/ --text\n',
    )
  addSettings(command, ['data', 'crawl'])
  return command.action(async (url: string, options: GetOptions) => {
    if ([options.text, options.links, options.headers].filter(Boolean).length > 1) {
      throw usageError('getting a page: give one of --text, --links and --headers')
    }
    const settings = readSettings(command)
    const { key, fetched } = await ask(settings, 'page', url)
    const record = await readRecord(join(settings.data, 'archive'), key, fetched)
    const print = (facts: object, text: string | Uint8Array) => {
      if (options.json !== true) return output.data(text)
      const { status, headers } = record
      const fetchedAt = new Date(fetched.startedAt).toISOString()
      output.data(
        JSON.stringify({ url: fetched.url, key, fetchId: fetched.fetchId, fetchedAt, status, headers, ...facts }),
      )
    }
    if (options.headers === true) {
      return print({}, [`HTTP ${record.status}`, ...record.headers.map(([n, v]) => `${n}: ${v}`)].join('\n'))
    }
    if (record.rawBody.length === 0) output.message(`${key}: ${whyEmpty(fetched)}`)
    const body = await bodyOf(key, record, Math.max(settings.maxBodyBytes, fetched.bodyBytes))
    if (options.text !== true && options.links !== true) return print({ bodyBase64: body.toString('base64') }, body)
    const page = parsePage({
      url: fetched.url,
      contentType: fetched.contentType,
      headers: record.headers,
      body,
      agentToken: 'weir',
    })
    if (page === null) throw new CommandError('parse', 1, `parsing ${key}: no parser for ${fetched.contentType}`)
    const { title, text } = page
    if (options.text === true) return print({ title, text }, title === null ? text : `${title}\n\n${text}`)
    const links = readLinks(page)
    // A page without links prints nothing, not an empty line.
    for (const link of options.json === true ? [] : links) if (link.url !== null) output.data(link.url)
    if (options.json === true) print({ links }, '')
  })
}

/** Why there is no body to show. */
function whyEmpty(fetched: Fetched): string {
  if (fetched.location !== null) return `the server answered ${fetched.status} to ${fetched.location}`
  if (fetched.truncated === 'type') return `the body was not read: its type is ${fetched.contentType ?? 'not given'}`
  return `the server answered ${fetched.status} without a body`
}

async function readRecord(archive: string, key: string, fetched: Fetched): Promise<ArchivedRecord> {
  try {
    return await readExchange(archive, fetched.archive!)
  } catch (error) {
    throw new CommandError('archive', 1, `reading the stored copy of ${key}: ${(error as Error).message}`, {
      cause: error,
    })
  }
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
