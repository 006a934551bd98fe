import type { Directives } from '../directives.ts'

/** What every handler is given: one response, its content coding undone. */
export interface PageInput {
  /** Where the body was fetched from; absolute. */
  readonly url: string
  readonly contentType: string | null
  readonly headers: readonly (readonly [string, string])[]
  readonly body: Buffer
  /** The crawler's product token, as robots.txt and robots directives name it. */
  readonly agentToken: string
}

/** What a handler finds. Fingerprints are added for all types alike. */
export interface PageContent {
  readonly charset: string
  /** What relative links resolve against. */
  readonly baseUrl: string
  /** White space collapsed, at most 1,024 characters. */
  readonly title: string | null
  readonly snippet: string | null
  /** Main text, one line a block, at most 256 KiB of UTF-8. */
  readonly text: string
  /** A language tag as the page gives it. */
  readonly language: string | null
  /** In the shape of `schemas/links.ts`. */
  readonly links: Uint8Array
  readonly linkCount: number
  readonly excessCount: number
  readonly directives: Directives
  /** Absolute, without fragment; null = none, or several that differ. */
  readonly canonicalUrl: string | null
}

/** A content handler: one file in this folder, listed in `page.ts`. */
export interface ContentHandler {
  /** Media types without parameters, lower case. */
  readonly types: readonly string[]
  /** Undefined: the body is not what its type says. Never throws for what a server sent. */
  parse(input: PageInput, type: string): PageContent | undefined
}

export const maxTextBytes = 256 * 1024
export const maxTitleChars = 1_024
export const maxSnippetChars = 320
