import { createFingerprinter, type Fingerprint } from './fingerprint.ts'
import { createHtmlHandler } from './handlers/html.ts'
import { createTextHandler } from './handlers/text.ts'
import { type ContentHandler, maxTextBytes, type PageContent, type PageInput } from './handlers/types.ts'

export type { PageInput } from './handlers/types.ts'

export interface ParsedPage extends PageContent, Fingerprint {}

/** Handlers by media type; later ones win. */
const defaultHandlers: readonly (() => ContentHandler)[] = [createHtmlHandler, createTextHandler]

/**
 * Makes a parser with buffers of its own, about 11 MB, which it reuses from page to page. Parsing is a function of its
 * input alone.
 */
export function createPageParser(
  handlers: readonly (() => ContentHandler)[] = defaultHandlers,
): (input: PageInput) => ParsedPage | null {
  const byType = new Map<string, ContentHandler>()
  for (const create of handlers) {
    const handler = create()
    for (const type of handler.types) byType.set(type, handler)
  }
  // UTF-8 never has fewer bytes than UTF-16 units; NFKC may add some, and those are left out.
  const fingerprint = createFingerprinter({ maxTextUnits: maxTextBytes })

  return (input) => {
    const type = mediaType(input)
    const content = byType.get(type)?.parse(input, type)
    return content === undefined ? null : { ...content, ...fingerprint(content.text) }
  }
}

/**
 * Parses one response of a type that there is a handler for: text/html, application/xhtml+xml, text/plain. Null for
 * other types, and for a body that is not of its type. Never throws for what a server sent.
 */
export function parsePage(input: PageInput): ParsedPage | null {
  parser ??= createPageParser()
  return parser(input)
}

let parser: ((input: PageInput) => ParsedPage | null) | undefined

/** The type of the header, without parameters; without header, HTML if the body starts like it. */
function mediaType({ contentType, body }: PageInput): string {
  const type = (contentType ?? '').split(';', 1)[0]!.trim().toLowerCase()
  if (type !== '') return type
  return htmlStart.test(body.toString('latin1', 0, 512)) ? 'text/html' : ''
}

/** Signatures of the MIME sniffing standard, 7.1, after a byte order mark and white space. */
const htmlStart =
  /^(?:\xef\xbb\xbf)?[\t\n\f\r ]*<(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p|!--)[\s>]/i
