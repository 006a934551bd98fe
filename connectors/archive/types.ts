/** Where a record is: file name, offset and length of its gzip member. */
export interface ArchiveRef {
  readonly file: string
  readonly offset: number
  readonly length: number
}

export interface ArchiveExchange {
  readonly url: string
  readonly address: string
  readonly startedAtMs: number
  readonly requestHead: Buffer
  /** Status line and headers as received (made coherent with `rawBody`: transfer coding undone). */
  readonly responseHead: Buffer
  /** Transfer coding undone, content coding kept. */
  readonly rawBody: Buffer
  readonly truncated: 'length' | 'time' | 'disconnect' | 'unspecified' | null
  /** SHA-1 of the payload (rawBody). */
  readonly payloadDigest: Uint8Array
  /** Set when this is a revisit: of which earlier record. */
  readonly revisit: {
    readonly profile: 'identical-payload-digest' | 'server-not-modified'
    readonly refersToUrl: string
    readonly refersToDateMs: number
  } | null
}

export interface ArchivedRecord {
  readonly url: string
  readonly dateMs: number
  readonly type: 'response' | 'revisit'
  readonly status: number
  readonly headers: readonly (readonly [string, string])[]
  /** Content coding kept. */
  readonly rawBody: Buffer
}

/** The Archive port. */
export interface Archive {
  /** Writes a request and a response (or revisit) record; the pointer is of the response. */
  append(exchange: ArchiveExchange): ArchiveRef
  /** Everything appended so far survives a power cut. Calls share one sync; nothing returned = it does already. */
  sync(): void | Promise<void>
  read(ref: ArchiveRef): Promise<ArchivedRecord>
  /** Ends the open file. */
  close(): Promise<void>
}
