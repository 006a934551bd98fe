import { charsetParameter, encodingOf } from './encodings.ts'

/**
 * Looks for an encoding in a page's first bytes, as a browser does before it parses: meta elements by the standard's
 * small tokenizer, then an XML declaration (HTML standard, "prescan a byte stream to determine its encoding").
 */
export function prescan(head: Uint8Array): string | undefined {
  const text = Buffer.from(head.buffer, head.byteOffset, head.byteLength).toString('latin1')
  if (text.startsWith('<\0?\0x\0')) return 'utf-16le'
  if (text.startsWith('\0<\0?\0x')) return 'utf-16be'
  let i = 0
  for (;;) {
    i = text.indexOf('<', i)
    if (i < 0) break
    if (text.startsWith('<!--', i)) {
      const end = text.indexOf('-->', i + 2)
      if (end < 0) break
      i = end + 3
    } else if (metaStart.test(text.slice(i, i + 6))) {
      const reader = { text, at: i + 5 }
      const found = metaEncoding(reader)
      if (found !== undefined) return found
      i = reader.at
    } else if (tagStart.test(text.slice(i, i + 3))) {
      i += 1
      while (i < text.length && text[i] !== '>' && !isSpace(text.charCodeAt(i))) i++
      const reader = { text, at: i }
      while (nextAttribute(reader) !== undefined);
      i = reader.at
    } else if (text[i + 1] === '!' || text[i + 1] === '/' || text[i + 1] === '?') {
      const end = text.indexOf('>', i)
      if (end < 0) break
      i = end + 1
    } else i++
  }
  return xmlEncoding(text)
}

interface Reader {
  readonly text: string
  at: number
}

const metaStart = /^<meta[\t\n\f\r /]/i
const tagStart = /^<\/?[a-z]/i

function metaEncoding(reader: Reader): string | undefined {
  const seen = new Set<string>()
  let pragma = false
  let needsPragma: boolean | undefined
  let label: string | undefined
  for (let attribute = nextAttribute(reader); attribute !== undefined; attribute = nextAttribute(reader)) {
    const [name, value] = attribute
    if (seen.has(name)) continue
    seen.add(name)
    if (name === 'http-equiv') pragma ||= value === 'content-type'
    else if (name === 'content' && label === undefined) {
      const found = charsetParameter(value)
      if (encodingOf(found) === undefined) continue
      label = found
      needsPragma = true
    } else if (name === 'charset') {
      label = value
      needsPragma = false
    }
  }
  if (needsPragma === undefined || (needsPragma && !pragma)) return undefined
  return declared(encodingOf(label ?? ''))
}

/** A page that can be read as ASCII this far is not UTF-16, whatever it says. */
function declared(name: string | undefined): string | undefined {
  if (name === 'utf-16be' || name === 'utf-16le') return 'utf-8'
  return name === 'x-user-defined' ? 'windows-1252' : name
}

/** The standard's "get an attribute": name and value in lower case; undefined at the tag's end. */
function nextAttribute(reader: Reader): [name: string, value: string] | undefined {
  const { text } = reader
  let i = reader.at
  while (i < text.length && (isSpace(text.charCodeAt(i)) || text[i] === '/')) i++
  if (i >= text.length || text[i] === '>') {
    reader.at = i
    return undefined
  }
  const nameStart = i
  while (i < text.length && (text[i] !== '=' || i === nameStart) && !endsName(text.charCodeAt(i))) i++
  const name = text.slice(nameStart, i).toLowerCase()
  while (i < text.length && isSpace(text.charCodeAt(i))) i++
  if (text[i] !== '=') {
    reader.at = i
    return [name, '']
  }
  i++
  while (i < text.length && isSpace(text.charCodeAt(i))) i++
  const quote = text[i]
  let start = i
  if (quote === '"' || quote === "'") {
    start = i + 1
    i = text.indexOf(quote, start)
    if (i < 0) {
      // The prescan's bytes end inside the value: there is no attribute.
      reader.at = text.length
      return undefined
    }
    reader.at = i + 1
  } else {
    while (i < text.length && text[i] !== '>' && !isSpace(text.charCodeAt(i))) i++
    reader.at = i
  }
  return [name, text.slice(start, i).toLowerCase()]
}

function xmlEncoding(text: string): string | undefined {
  if (!text.startsWith('<?xml')) return undefined
  const end = text.indexOf('>')
  const match = /encoding[\0- ]*=[\0- ]*(["'])([^"']*)\1/.exec(text.slice(0, end < 0 ? undefined : end))
  return match === null ? undefined : declared(encodingOf(match[2]!))
}

function isSpace(code: number): boolean {
  return code === 32 || code === 9 || code === 10 || code === 12 || code === 13
}

function endsName(code: number): boolean {
  return code === 62 || code === 47 || isSpace(code)
}
