import type { HttpError } from './types.ts'

/** An error whose kind is known where it arises: deadlines, refused addresses, broken heads. */
export class HttpFailure extends Error {
  override readonly name = 'HttpFailure'
  readonly code: HttpError
  constructor(code: HttpError, message: string) {
    super(message)
    this.code = code
  }
}

const byCode: { readonly [code: string]: HttpError } = {
  ECONNREFUSED: 'refused',
  EHOSTUNREACH: 'unreachable',
  ENETUNREACH: 'unreachable',
  ENETDOWN: 'unreachable',
  EHOSTDOWN: 'unreachable',
  EADDRNOTAVAIL: 'unreachable',
  EACCES: 'unreachable',
  EPERM: 'unreachable',
  EINVAL: 'unreachable',
  EMFILE: 'unreachable',
  ENFILE: 'unreachable',
  ETIMEDOUT: 'connect-timeout',
  ECONNRESET: 'reset',
  ECONNABORTED: 'reset',
  EPIPE: 'reset',
  UND_ERR_SOCKET: 'reset',
  UND_ERR_DESTROYED: 'reset',
  UND_ERR_CLOSED: 'reset',
  UND_ERR_ABORTED: 'reset',
  UND_ERR_HEADERS_OVERFLOW: 'protocol',
  UND_ERR_INVALID_ARG: 'protocol',
}

/** What an error of sockets, TLS or undici means. `phase`: what was going on. */
export function httpError(error: unknown, phase: 'tcp' | 'tls' | 'head' | 'body'): HttpError {
  if (error instanceof HttpFailure) return error.code
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
  // undici's word for bytes that answer no request, and for a 100 that nobody asked for.
  if (code === 'UND_ERR_SOCKET' && error instanceof Error && error.message.startsWith('bad ')) return 'protocol'
  // Fewer bytes than were promised; before the head is complete, two promises that differ.
  if (code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') return phase === 'body' ? 'reset' : 'protocol'
  const known = byCode[code]
  if (known !== undefined) return known
  if (phase === 'tls' || code.startsWith('ERR_TLS_') || code.startsWith('ERR_SSL_')) return 'tls'
  return phase === 'tcp' ? 'unreachable' : 'protocol'
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
