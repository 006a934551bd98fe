import { ArchiveError } from './errors.ts'

/**
 * A response head that fits the body as it is stored: Transfer-Encoding is gone (it was undone), Content-Length is
 * `bodyBytes`, lines end in CRLF; the version of HTTP/2 is written as 1.1, which readers of HTTP messages know.
 * `bodyBytes` null (a 304, which has no body) leaves Content-Length as received.
 */
export function coherentHead(responseHead: Buffer, bodyBytes: number | null): Buffer {
  const lines = splitLines(responseHead.toString('latin1'))
  const kept: string[] = [(lines[0] ?? '').replace(/^HTTP\/2(?:\.0)? /, 'HTTP/1.1 ')]
  let dropping = false
  for (const line of lines.slice(1)) {
    if (line === '') break
    // A folded line belongs to the field before it (RFC 9112, 5.2).
    if (line[0] !== ' ' && line[0] !== '\t') {
      const name = line.slice(0, Math.max(0, line.indexOf(':'))).toLowerCase()
      dropping = name === 'transfer-encoding' || (name === 'content-length' && bodyBytes !== null)
    }
    if (!dropping) kept.push(line)
  }
  if (bodyBytes !== null) kept.push(`Content-Length: ${bodyBytes}`)
  return Buffer.from(`${kept.join('\r\n')}\r\n\r\n`, 'latin1')
}

export interface HttpBlock {
  readonly status: number
  readonly headers: readonly (readonly [string, string])[]
  readonly body: Buffer
}

/** Status, headers and what follows them. Throws ArchiveError `malformed`. */
export function parseHttpResponse(block: Buffer): HttpBlock {
  const { headText, bodyStart } = splitHead(block)
  const lines = splitLines(headText)
  const status = /^HTTP\/\d(?:\.\d)? (\d{3})(?: |$)/.exec(lines[0] ?? '')
  if (status === null) throw new ArchiveError('malformed', `no HTTP status line: ${(lines[0] ?? '').slice(0, 80)}`)
  return {
    status: Number(status[1]),
    headers: parseFields(lines.slice(1)),
    body: block.subarray(bodyStart),
  }
}

/** `Name: value` lines, folded ones joined by a space; lines without a colon are skipped. */
export function parseFields(lines: readonly string[]): [string, string][] {
  const fields: [string, string][] = []
  for (const line of lines) {
    if (line === '') break
    const last = fields.at(-1)
    if ((line[0] === ' ' || line[0] === '\t') && last !== undefined) {
      last[1] = `${last[1]} ${line.trim()}`
      continue
    }
    const colon = line.indexOf(':')
    if (colon > 0) fields.push([line.slice(0, colon).trim(), line.slice(colon + 1).trim()])
  }
  return fields
}

export function splitLines(text: string): string[] {
  return text.split('\n').map((line) => (line.endsWith('\r') ? line.slice(0, -1) : line))
}

/** The head ends at the first empty line; a block without one is all head. */
function splitHead(block: Buffer): { headText: string; bodyStart: number } {
  let lineStart = 0
  for (;;) {
    const newline = block.indexOf(0x0a, lineStart)
    if (newline < 0) return { headText: block.toString('latin1'), bodyStart: block.length }
    const length = newline - lineStart
    if (lineStart > 0 && (length === 0 || (length === 1 && block[lineStart] === 0x0d))) {
      return {
        headText: block.toString('latin1', 0, lineStart),
        bodyStart: newline + 1,
      }
    }
    lineStart = newline + 1
  }
}
