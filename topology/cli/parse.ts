import { readFileSync } from 'node:fs'
import { extname, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Command } from 'commander'
import { parsePage } from '../../processors/parse/page.ts'
import { iterateLinks } from '../../schemas/links.ts'
import { CommandError, usageError } from '../errors.ts'
import type { Output } from './output.ts'

const typeByExtension: { readonly [extension: string]: string } = {
  '.xhtml': 'application/xhtml+xml',
  '.txt': 'text/plain',
}

export function parseCommand(output: Output): Command {
  return new Command('parse')
    .description('Parses files as the crawler would: title, text, links, hashes.')
    .argument('<files...>', 'HTML or text files; - for standard input')
    .option('--url <url>', 'the URL of the page: links resolve against it (default: the file itself)')
    .option('--json', 'one JSON object a file: {file, url, title, text, links, contentHash, simhash, language}')
    .addHelpText('after', '\nExample:\n  $ weir parse page.html --url https://example.org/page --json\n')
    .action((files: string[], options: { url?: string; json?: boolean }) => {
      if (options.url !== undefined && !URL.canParse(options.url)) throw usageError(`--url: "${options.url}" is no URL`)
      for (const file of files) {
        const parsed = parseFile(file, options.url)
        output.data(options.json === true ? JSON.stringify(parsed) : readable(parsed))
      }
    })
}

interface ParsedFile {
  file: string
  url: string
  title: string | null
  text: string
  links: { href: string; url: string | null; linkKind: string; rel: string | null }[]
  contentHash: string
  simhash: string
  language: string | null
}

function parseFile(file: string, givenUrl: string | undefined): ParsedFile {
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
  const links = [...iterateLinks(page.links)].map((link) => ({
    href: link.href,
    url: URL.canParse(link.href, page.baseUrl) ? new URL(link.href, page.baseUrl).href : null,
    linkKind: link.kind,
    rel: (link.flags & 1) === 1 ? 'nofollow' : null,
  }))
  return {
    file,
    url,
    title: page.title,
    text: page.text,
    links,
    contentHash: Buffer.from(page.contentHash).toString('hex'),
    simhash: Buffer.from(page.simhash).toString('hex'),
    language: page.language,
  }
}

function readable(p: ParsedFile): string {
  const links = p.links.map((l) => `  ${l.linkKind.padEnd(9)} ${l.url ?? l.href}`).join('\n')
  return `${p.file}\ntitle:    ${p.title ?? '(none)'}\nlanguage: ${p.language ?? '(none)'}\ncontent:  ${p.contentHash}  simhash ${p.simhash}\nlinks:    ${p.links.length}\n${links}\ntext:     ${p.text.length} characters\n${p.text}`
}
