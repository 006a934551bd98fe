import type { Socket } from 'node:net'

/** What undici does not tell of a response, read from the bytes on their way to its parser. */
export interface ResponseTap {
  /** A request is written: the next bytes begin a response. */
  begin(): void
  /** Of the last response's status line; '1.1' until there was one. */
  httpVersion(): '1.0' | '1.1'
}

const statusLine = 'HTTP/1.'
const maxInterimBytes = 8 * 1024

/**
 * Notes the HTTP version, and takes out interim (1xx) responses: a client must accept them unasked (RFC 9110 §15.2),
 * but undici closes the connection on a 100. It sits on `socket.read`, which is how undici's parser gets its bytes.
 */
export function tapResponses(socket: Socket): ResponseTap {
  const read = socket.read.bind(socket)
  let looking = false
  let held: Buffer | null = null
  let version: '1.0' | '1.1' = '1.1'

  /** Bytes for the parser, or null to hold them until more have come. */
  function look(chunk: Buffer): Buffer | null {
    let bytes: Buffer = held === null ? chunk : Buffer.concat([held, chunk])
    held = null
    while (isInterim(bytes)) {
      const end = bytes.indexOf('\r\n\r\n')
      if (end < 0) {
        if (bytes.length > maxInterimBytes) break
        held = bytes
        return null
      }
      bytes = bytes.subarray(end + 4)
    }
    if (bytes.length === 0) return null
    if (mayBecomeInterim(bytes)) {
      held = bytes
      return null
    }
    looking = false
    version = bytes.toString('latin1', 0, 8) === 'HTTP/1.0' ? '1.0' : '1.1'
    return bytes
  }

  socket.read = (size?: number): unknown => {
    for (;;) {
      const chunk: unknown = read(size)
      if (!looking || !Buffer.isBuffer(chunk)) return chunk
      const bytes = look(chunk)
      if (bytes !== null) return bytes
    }
  }

  return {
    begin() {
      looking = true
      held = null
    },
    httpVersion: () => version,
  }
}

/** 1xx but 101, which would end HTTP on this connection. */
function isInterim(bytes: Buffer): boolean {
  const text = bytes.toString('latin1', 0, 12)
  return text.length === 12 && text.startsWith(statusLine) && text.startsWith(' 1', 8) && !text.startsWith('101', 9)
}

/** Too short to tell whether it is one: at most eleven bytes are held, and only while they fit. */
function mayBecomeInterim(bytes: Buffer): boolean {
  if (bytes.length >= 12) return false
  const text = bytes.toString('latin1')
  return statusLine.startsWith(text.slice(0, 7)) && ' 1'.startsWith(text.slice(8, 10))
}
