/** The encoding that a label names, or undefined (Encoding standard, 4.2). */
export function encodingOf(label: string): string | undefined {
  const trimmed = label.trim()
  if (trimmed === '' || trimmed.length > 40) return undefined
  const key = trimmed.toLowerCase()
  const known = encodings.get(key)
  if (known !== undefined) return known === '' ? undefined : known
  let name = ''
  try {
    name = new TextDecoder(key).encoding
  } catch {
    // Not a label.
  }
  // Bounded, since labels come from outside.
  if (encodings.size < 1_000) encodings.set(key, name)
  return name === '' ? undefined : name
}

/** The value of `charset=` in a Content-Type header or a meta element's content (HTML, "extracting a character encoding"). */
export function charsetParameter(value: string): string {
  const lower = value.toLowerCase()
  for (let at = lower.indexOf('charset'); at >= 0; at = lower.indexOf('charset', at)) {
    at += 'charset'.length
    let i = skipSpace(value, at)
    if (value[i] !== '=') continue
    i = skipSpace(value, i + 1)
    const quote = value[i]
    if (quote === '"' || quote === "'") {
      const end = value.indexOf(quote, i + 1)
      return end < 0 ? '' : value.slice(i + 1, end)
    }
    let end = i
    while (end < value.length && value[end] !== ';' && !isSpace(value[end]!)) end++
    return value.slice(i, end)
  }
  return ''
}

const encodings = new Map<string, string>()

function skipSpace(value: string, from: number): number {
  let i = from
  while (i < value.length && isSpace(value[i]!)) i++
  return i
}

function isSpace(char: string): boolean {
  return char === ' ' || char === '\t' || char === '\n' || char === '\f' || char === '\r'
}
