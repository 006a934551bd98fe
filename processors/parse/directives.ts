export interface Directives {
  noindex: boolean
  nofollow: boolean
  noarchive: boolean
}

/**
 * Collects what a page asks of robots, from meta elements and X-Robots-Tag headers: the union of what is said to
 * everyone and what is said to us. `agentToken` is the crawler's product token; names are compared without case.
 */
export interface DirectivesCollector {
  readonly found: Directives
  meta(name: string, content: string): void
  /** One X-Robots-Tag header: `noindex, nofollow`, `mybot: noindex`, or several agents in one. */
  header(value: string): void
}

export function createDirectivesCollector(agentToken: string): DirectivesCollector {
  const found: Directives = { noindex: false, nofollow: false, noarchive: false }
  const ours = agentToken.toLowerCase()

  return {
    found,
    meta(name, content) {
      const to = name.trim().toLowerCase()
      if (to !== '' && (to === 'robots' || to === ours)) apply(content)
    },
    header(value) {
      let forUs = true
      for (const part of value.split(',')) {
        const colon = part.indexOf(':')
        if (colon < 0) {
          if (forUs) apply(part)
          continue
        }
        const name = part.slice(0, colon).trim().toLowerCase()
        // `max-snippet: 20` and the like are directives with a value, not names of agents.
        if (name === 'unavailable_after' || name.startsWith('max-')) continue
        forUs = name === ours || name === '*' || name === 'robots'
        if (forUs) apply(part.slice(colon + 1))
      }
    },
  }

  function apply(list: string): void {
    for (const token of list.toLowerCase().split(/[\s,;]/)) {
      if (token === 'noindex' || token === 'none') found.noindex = true
      if (token === 'nofollow' || token === 'none') found.nofollow = true
      if (token === 'noarchive' || token === 'nocache') found.noarchive = true
    }
  }
}
