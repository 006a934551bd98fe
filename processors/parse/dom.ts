import { createRequire } from 'node:module'
import type { CheerioAPI, load } from 'cheerio'

/** A page that would cost more than a page may. `message` names the bound. */
export class DomLimitError extends Error {
  readonly code = 'dom-limit'

  constructor(message: string) {
    super(message)
    this.name = 'DomLimitError'
  }
}

/**
 * The page as a tree, built as browsers build it. Tree builders take quadratic time on hostile pages (attributes of one
 * tag, nesting, siblings), so these are bounded: throws DomLimitError.
 */
export function loadDom(html: string): CheerioAPI {
  refuseHugeTags(html)
  const { load, treeAdapter } = library()
  let depth = 0
  let elements = 0
  return load(html, {
    treeAdapter: {
      ...treeAdapter,
      appendChild(parent, node) {
        if (parent.children.length >= maxChildren) throw new DomLimitError(`more than ${maxChildren} children of one`)
        treeAdapter.appendChild(parent, node)
      },
      onItemPush() {
        if (++depth > maxDepth) throw new DomLimitError(`elements nested more than ${maxDepth} deep`)
        if (++elements > maxElements) throw new DomLimitError(`more than ${maxElements} elements`)
      },
      onItemPop() {
        depth--
      },
    },
  })
}

/** What the selector library says against a selector; null = it compiles. */
export function selectorFault(css: string): string | null {
  emptyPage ??= library().load('')
  try {
    emptyPage(css)
    return null
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

const maxDepth = 512
const maxElements = 100_000
const maxChildren = 20_000
const maxAttributes = 512

/** Attributes of one tag cost the tree builder the square of their number. The scan itself is linear, by its budget. */
function refuseHugeTags(html: string): void {
  let budget = 8 * html.length
  for (let at = html.indexOf('<'); at >= 0; at = html.indexOf('<', at + 1)) {
    tagStart.lastIndex = at
    if (!tagStart.test(html)) continue
    let end = tagStart.lastIndex
    for (let n = 0; ; n++) {
      attribute.lastIndex = end
      if (!attribute.test(html)) break
      end = attribute.lastIndex
      if (n >= maxAttributes) throw new DomLimitError(`more than ${maxAttributes} attributes of one tag`)
    }
    budget -= end - at
    if (budget < 0) throw new DomLimitError('tags within tags')
  }
}

// HTML standard, 13.2.5.6 to 13.2.5.39. Looked for at every "<", also where it starts no tag, so that no trick with
// comments and scripts hides one.
const tagStart = /<\/?[a-z][^\t\n\f\r />]*/iy
const attribute =
  /[\t\n\f\r /]*[^\t\n\f\r />][^\t\n\f\r />=]*(?:[\t\n\f\r ]*=[\t\n\f\r ]*(?:"[^"]*(?:"|$)|'[^']*(?:'|$)|[^\t\n\f\r >]*))?/y

interface Library {
  readonly load: typeof load
  readonly treeAdapter: NonNullable<NonNullable<Parameters<typeof load>[1]>['treeAdapter']>
}

/** Loaded on first use: a crawl without rules does not pay for it. */
function library(): Library {
  if (loaded === undefined) {
    const require = createRequire(import.meta.url)
    const { load } = require('cheerio') as typeof import('cheerio')
    // The adapter that the library itself uses, as it finds it.
    const { adapter } = createRequire(require.resolve('cheerio'))('parse5-htmlparser2-tree-adapter') as {
      adapter: Library['treeAdapter']
    }
    loaded = { load, treeAdapter: adapter }
  }
  return loaded
}

let loaded: Library | undefined
let emptyPage: CheerioAPI | undefined
