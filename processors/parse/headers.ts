/** Values of a header, in order. `name` in lower case. */
export function headerValues(headers: readonly (readonly [string, string])[], name: string): string[] {
  const values: string[] = []
  for (const [key, value] of headers) {
    if (key.length === name.length && key.toLowerCase() === name) values.push(value)
  }
  return values
}

export interface HeaderLink {
  readonly target: string
  /** Relation types, lower case. */
  readonly rel: readonly string[]
  /** Other parameters by lower-case name; the first of a name counts. */
  readonly params: ReadonlyMap<string, string>
}

const maxHeaderLinks = 100

/** Links of a Link header (RFC 8288, 3 and appendix B.2), at most 100; what is not understood ends it. */
export function parseLinkHeader(value: string): HeaderLink[] {
  const links: HeaderLink[] = []
  let i = 0
  while (i < value.length && links.length < maxHeaderLinks) {
    i = skip(value, i, ' \t,')
    if (value[i] !== '<') break
    const close = value.indexOf('>', i)
    if (close < 0) break
    const target = value.slice(i + 1, close).trim()
    const params = new Map<string, string>()
    i = skip(value, close + 1, ' \t')
    while (value[i] === ';') {
      i = skip(value, i + 1, ' \t')
      const nameStart = i
      while (i < value.length && !' \t;,='.includes(value[i]!)) i++
      const name = value.slice(nameStart, i).toLowerCase()
      i = skip(value, i, ' \t')
      let param = ''
      if (value[i] === '=') {
        i = skip(value, i + 1, ' \t')
        if (value[i] === '"') [param, i] = quoted(value, i)
        else {
          const start = i
          while (i < value.length && !' \t;,'.includes(value[i]!)) i++
          param = value.slice(start, i)
        }
      }
      i = skip(value, i, ' \t')
      if (name !== '' && !params.has(name)) params.set(name, param)
    }
    const rel = (params.get('rel') ?? '').toLowerCase().split(/\s+/).filter(Boolean)
    links.push({ target, rel, params })
    if (i < value.length && value[i] !== ',') break
  }
  return links
}

function quoted(value: string, at: number): [text: string, end: number] {
  const parts: string[] = []
  let i = at + 1
  for (; i < value.length && value[i] !== '"'; i++) {
    if (value[i] === '\\' && i + 1 < value.length) i++
    parts.push(value[i]!)
  }
  return [parts.join(''), i + 1]
}

function skip(value: string, from: number, chars: string): number {
  let i = from
  while (i < value.length && chars.includes(value[i]!)) i++
  return i
}
