import { readFileSync } from 'node:fs'
import { extname, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Command } from 'commander'
import { createExtractor, type Extracted, type Extractor } from '../../processors/parse/extract.ts'
import { type ParsedPage, parsePage } from '../../processors/parse/page.ts'
import { iterateLinks } from '../../schemas/links.ts'
import { type LinkKind, linkFlags } from '../../schemas/types.ts'
import { CommandError, usageError } from '../errors.ts'
import { addSettings, readSettings } from './options.ts'
import type { Output } from './output.ts'

const typeByExtension: { readonly [extension: string]: string } = {
  '.xhtml': 'application/xhtml+xml',
  '.txt': 'text/plain',
}

export function parseCommand(output: Output): Command {
  const command = new Command('parse')
    .description(
      "Parses files as the crawler would: title, text, links, hashes, and the fields of the settings file's rules.",
    )
    .argument('<files...>', 'HTML or text files; - for standard input')
    .option('--url <url>', 'the URL of the page: links resolve against it (default: the file itself)')
    .option(
      '--json',
      'one JSON object a file: {file, url, title, text, links, contentHash, simhash, language, extracted}',
    )
    .addHelpText('after', '\nExample:\n  $ weir parse page.html --url https://example.org/page --json\n')
  addSettings(command, [])
  return command.action((files: string[], options: { url?: string; json?: boolean }) => {
    if (options.url !== undefined && !URL.canParse(options.url)) throw usageError(`--url: "${options.url}" is no URL`)
    const rules = readSettings(command).extract
    const extract = Object.keys(rules).length === 0 ? null : createExtractor(rules)
    for (const file of files) {
      try {
        const parsed = parseFile(file, options.url, extract)
        output.data(options.json === true ? JSON.stringify(parsed) : readable(parsed))
      } catch (error) {
        if (!(error instanceof CommandError)) throw error
        output.message(`weir: ${error.message}`)
        process.exitCode = error.exitCode
      }
    }
  })
}

export interface ParsedLink {
  /** As written. */
  href: string
  /** Absolute; null where it is no URL. */
  url: string | null
  linkKind: LinkKind
  rel: 'nofollow' | null
}

export function readLinks(page: ParsedPage): ParsedLink[] {
  return [...iterateLinks(page.links)].map(({ href, kind, flags }) => ({
    href,
    url: URL.parse(href, page.baseUrl)?.href ?? null,
    linkKind: kind,
    rel: (flags & linkFlags.nofollow) === 0 ? null : 'nofollow',
  }))
}

interface ParsedFile {
  file: string
  url: string
  title: string | null
  text: string
  links: ParsedLink[]
  contentHash: string
  simhash: string
  language: string | null
  /** Absent without rules. Rules for hosts need --url. */
  extracted?: Extracted
}

function parseFile(file: string, givenUrl: string | undefined, extract: Extractor | null): ParsedFile {
  let body: Buffer
  try {
    body = readFileSync(file === '-' ? 0 : file)
  } catch (error) {
    throw new CommandError('read', 1, `reading ${file}: ${(error as Error).message}`, { cause: error })
  }
  const url = givenUrl ?? (file === '-' ? 'http://localhost/' : pathToFileURL(resolve(file)).href)
  const contentType = typeByExtension[extname(file)] ?? 'text/html'
  const page = parsePage({ url, contentType, headers: [], body, agentToken: 'weir' })
  if (page === null) throw new CommandError('parse', 1, `parsing ${file}: no parser for ${contentType}`)
  return {
    file,
    url,
    title: page.title,
    text: page.text,
    links: readLinks(page),
    contentHash: Buffer.from(page.contentHash).toString('hex'),
    simhash: Buffer.from(page.simhash).toString('hex'),
    language: page.language,
    ...(extract === null ? {} : { extracted: extractFields(file, extract, { url, contentType, body, page }) }),
  }
}

function extractFields(
  file: string,
  extract: Extractor,
  from: { url: string; contentType: string; body: Buffer; page: ParsedPage },
): Extracted {
  const { url, contentType, body, page } = from
  try {
    return extract({ host: new URL(url).hostname, contentType, body, charset: page.charset })
  } catch (error) {
    throw new CommandError('extract-failed', 1, `extracting from ${file}: ${(error as Error).message}`, {
      cause: error,
    })
  }
}

function readable(p: ParsedFile): string {
  const links = p.links.map((l) => `  ${l.linkKind.padEnd(9)} ${l.url ?? l.href}`).join('\n')
  const fields = Object.entries(p.extracted ?? {}).map(([field, values]) => `${field}: ${values.join(' | ')}\n`)
  return `${p.file}\ntitle:    ${p.title ?? '(none)'}\nlanguage: ${p.language ?? '(none)'}\ncontent:  ${p.contentHash}  simhash ${p.simhash}\nlinks:    ${p.links.length}\n${links}\n${fields.join('')}text:     ${p.text.length} characters\n${p.text}`
}
