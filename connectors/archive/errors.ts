/**
 * `disk-full`, `write-failed`: the exchange is not archived, the file is as before it · `sync-failed`: what was
 * appended may be lost at a power cut; the process should stop · `not-found`: no such file or record ·
 * `bad-pointer`: the pointer is not of one whole response or revisit · `malformed`: not a WARC record · `too-large`:
 * a record over the reader's bound · `closed`.
 */
export type ArchiveErrorCode =
  | 'disk-full'
  | 'write-failed'
  | 'sync-failed'
  | 'not-found'
  | 'bad-pointer'
  | 'malformed'
  | 'too-large'
  | 'closed'

export class ArchiveError extends Error {
  readonly code: ArchiveErrorCode

  constructor(code: ArchiveErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ArchiveError'
    this.code = code
  }
}
