import type { CheerioAPI } from 'cheerio'
import { loadDom } from './dom.ts'
import type { ExtractRule, ExtractRules } from './extract-rules.ts'

export interface ExtractInput {
  /** As in the URL: lower case, without port. */
  readonly host: string
  /** As fetched; null = none was sent. */
  readonly contentType: string | null
  /** Content coding undone. Bytes are decoded by `charset`. */
  readonly body: Buffer | string
  /** A name that TextDecoder knows (the parsed page's charset); default UTF-8. */
  readonly charset?: string
}

/** Values by field, in document order; a field without a value is absent. */
export type Extracted = { [field: string]: string[] }
export type Extractor = (page: ExtractInput) => Extracted

export const maxValueChars = 10_000
export const maxValues = 100
/** Of UTF-8, all fields of a page together. */
export const maxExtractedBytes = 256 * 1024
/** What follows in a longer page is not looked at. */
export const maxPageChars = 2 * 1024 * 1024

/**
 * Reads the fields that rules name from HTML pages. A page is decoded and its tree built only if a rule is for its host;
 * plain text has no fields. Values are cut at 10,000 characters, a field at 100 values, a page's at 256 KiB. A function of its input alone.
 * Throws DomLimitError for a page that is not worth its tree, and what the selector library throws.
 */
export function createExtractor(rules: ExtractRules): Extractor {
  const entries = Object.entries(rules).map(([field, rule]) => ({
    field,
    rule,
    hosts: rule.hosts === null ? null : new Set(rule.hosts),
  }))

  return ({ host, contentType, body, charset = 'utf-8' }) => {
    const extracted: Extracted = {}
    const mine = entries.filter(({ hosts }) => hosts === null || hosts.has(host))
    if (mine.length === 0 || isPlainText(contentType)) return extracted
    const html = typeof body === 'string' ? body : new TextDecoder(charset).decode(body.subarray(0, 4 * maxPageChars))
    const $ = loadDom(html.slice(0, maxPageChars))
    let room = maxExtractedBytes
    for (const { field, rule } of mine) {
      const values: string[] = []
      for (const value of valuesOf($, rule)) {
        room -= Buffer.byteLength(value)
        if (room < 0) break
        values.push(value)
      }
      if (values.length > 0) extracted[field] = values
      if (room < 0) break
    }
    return extracted
  }
}

function valuesOf($: CheerioAPI, { css, read, many }: ExtractRule): string[] {
  const values: string[] = []
  const wanted = many ? maxValues : 1
  for (const element of $(css)) {
    const value = tidy(
      read,
      read === 'text' ? $(element).text() : read === 'html' ? $(element).html() : $(element).attr(read.slice(5)),
    )
    if (value === '') continue
    values.push(value)
    if (values.length === wanted) break
  }
  return values
}

function tidy(read: ExtractRule['read'], value: string | null | undefined): string {
  const text = read === 'text' ? (value ?? '').replace(/\s+/g, ' ').trim() : (value ?? '').trim()
  // Never half a character, and no half that the page had: the value must survive UTF-8.
  return text.slice(0, maxValueChars).toWellFormed()
}

function isPlainText(contentType: string | null): boolean {
  return /^\s*text\/plain\s*(?:;|$)/i.test(contentType ?? '')
}
