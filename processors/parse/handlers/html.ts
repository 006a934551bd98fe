import { sniffCharset, toUtf8 } from '../charset.ts'
import { createFactsCollector } from '../facts.ts'
import { decodeAttribute, decodeText } from '../references.ts'
import { languageTag, opening, tidy } from '../strings.ts'
import { attributeId, attributeNames, tagId } from '../tags.ts'
import { createTextCollector, type TextScope } from '../text.ts'
import { attributeWords, createScanner, tokenKinds } from '../tokenizer.ts'
import { type ContentHandler, maxSnippetChars, maxTextBytes, maxTitleChars } from './types.ts'

const xhtml = 'application/xhtml+xml'
const snippetChars = 200
/** With fewer words left than this, the main text is all of the body's. */
const minMainWords = 25
/** A page of links loses nearly all: what is left then, a licence or an imprint, is on every page of the site. */
const maxRemnantWords = 100
const minMainShare = 0.1

/**
 * HTML and XHTML in one pass over the tokens, without a tree: links as a browser without scripts finds them, what the
 * head says, and the main text. The content of a template is inert unless it is a shadow root. Buffers are reused from
 * page to page.
 */
export function createHtmlHandler(): ContentHandler {
  const scanners = { html: createScanner(), xml: createScanner({ xml: true }) }
  const text = createTextCollector({ maxTextBytes })
  const facts = createFactsCollector()
  /** Value ranges of the current start tag's attributes by id: start and end; start -1 = absent. */
  const ranges = new Int32Array(2 * attributeNames.length)
  let dirty = true
  let page: Buffer = Buffer.alloc(0)

  return {
    types: ['text/html', xhtml],
    parse(input, type) {
      const charset = sniffCharset(input.body, input.contentType)
      page = toUtf8(input.body, charset)
      const xml = type === xhtml
      facts.begin(input)
      read(xml, 'main')
      let main = text.end()
      if (isRemnant(text.wordCount, text.seenWords)) {
        facts.begin(input)
        read(xml, 'body')
        main = text.end()
      }
      const mainText = main.toString()
      const { title, description, language, ...rest } = facts.end()
      page = Buffer.alloc(0)
      return {
        ...rest,
        charset: charset.name,
        title: tidy(title ?? '', maxTitleChars) || null,
        snippet: tidy(description ?? '', maxSnippetChars) || opening(mainText, snippetChars) || null,
        text: mainText,
        language: languageTag(language),
      }
    },
  }

  function read(xml: boolean, scope: TextScope): void {
    const scanner = xml ? scanners.xml : scanners.html
    const { tape } = scanner
    let inSvg = false
    scanner.begin(page)
    text.begin(page, scope)
    for (let n = scanner.fill(); n > 0; n = scanner.fill()) {
      for (let w = 0; w < n; ) {
        const word = tape[w]!
        const kind = word & 0xff
        const tag = (word >>> 8) & 0xff
        if (kind === tokenKinds.start) {
          const attributes = w + 4
          w = attributes + attributeWords * tape[w + 3]!
          readAttributes(tape, attributes, w)
          if (tag === tags.svg) inSvg = true
          if (tag === tags.template && has(names.shadowrootmode)) continue
          if (tag === tags.a) text.openLink(has(names.href))
          else {
            text.startTag(tag)
            const closed = (word >>> 16) & 1
            if (closed === 1 && (xml || tag === tags.svg || tag === tags.math)) text.endTag(tag)
          }
          if (attributes < w && !text.inTemplate) startTag(tag)
          continue
        }
        const start = tape[w + 1]!
        const end = tape[w + 2]!
        w += 3
        if (kind === tokenKinds.text || kind === tokenKinds.cdata) text.add(start, end)
        else if (kind === tokenKinds.end) {
          text.endTag(tag)
          if (tag === tags.svg) inSvg = false
        } else if (tag === tags.title) {
          if (facts.wantsTitle && !inSvg && !text.inTemplate) facts.title(decodeText(page.toString('utf8', start, end)))
        } else if (tag === tags.xmp || tag === tags.plaintext) text.add(start, end)
      }
    }
  }

  function startTag(tag: number): void {
    if (tag === tags.a || tag === tags.area) {
      const start = ranges[2 * names.href]!
      if (start !== -1) facts.anchor(page, start, ranges[2 * names.href + 1]!, value(names.rel))
    } else if (tag === tags.iframe || tag === tags.frame) {
      const src = value(names.src)
      if (src !== null) facts.frame(src)
    } else if (tag === tags.link) {
      const href = value(names.href)
      const rel = value(names.rel)
      if (href !== null && rel !== null) facts.link(href, rel, has(names.hreflang))
    } else if (tag === tags.meta) {
      const content = value(names.content)
      if (content !== null) facts.meta(value(names.name) ?? value(names.property), value(names.httpEquiv), content)
    } else if (tag === tags.base) {
      const href = value(names.href)
      if (href !== null) facts.base(href)
    } else if (tag === tags.html) {
      const language = value(names.lang) ?? value(names.xmlLang)
      if (language !== null) facts.language(language)
    }
  }

  function readAttributes(tape: Int32Array, from: number, to: number): void {
    if (dirty) ranges.fill(-1)
    dirty = from < to
    for (let w = from; w < to; w += attributeWords) {
      const at = 2 * tape[w]!
      if (ranges[at] !== -1) continue
      ranges[at] = tape[w + 3]!
      ranges[at + 1] = tape[w + 4]!
    }
  }

  function has(attribute: number): boolean {
    return ranges[2 * attribute] !== -1
  }

  function value(attribute: number): string | null {
    const start = ranges[2 * attribute]!
    return start === -1 ? null : decodeAttribute(page.toString('utf8', start, ranges[2 * attribute + 1]!))
  }
}

const tags = {
  a: tagId('a'),
  area: tagId('area'),
  base: tagId('base'),
  frame: tagId('frame'),
  html: tagId('html'),
  iframe: tagId('iframe'),
  link: tagId('link'),
  math: tagId('math'),
  meta: tagId('meta'),
  plaintext: tagId('plaintext'),
  svg: tagId('svg'),
  template: tagId('template'),
  title: tagId('title'),
  xmp: tagId('xmp'),
} as const

const names = {
  content: attributeId('content'),
  href: attributeId('href'),
  hreflang: attributeId('hreflang'),
  httpEquiv: attributeId('http-equiv'),
  lang: attributeId('lang'),
  name: attributeId('name'),
  property: attributeId('property'),
  rel: attributeId('rel'),
  shadowrootmode: attributeId('shadowrootmode'),
  src: attributeId('src'),
  xmlLang: attributeId('xml:lang'),
} as const

function isRemnant(mainWords: number, seenWords: number): boolean {
  return mainWords < minMainWords || (mainWords < maxRemnantWords && mainWords < seenWords * minMainShare)
}
