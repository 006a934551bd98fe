/** The Http port: one request to one address, nothing followed, nothing retried. */
export interface HttpRequest {
  /** Absolute http or https URL. */
  readonly url: string
  /** The address to connect to: what was checked is what is connected. */
  readonly address: string
  /** Lower-case names. User-Agent and conditional headers come from here; Host is the adapter's. */
  readonly headers: readonly (readonly [string, string])[]
  /** Cap on decoded body bytes; what is over is cut and `truncated` says `length`. */
  readonly maxBodyBytes: number
  readonly connectTimeoutMs: number
  readonly headersTimeoutMs: number
  readonly totalTimeoutMs: number
  /** Below this rate, measured over ten seconds, the body is cut (`time`). */
  readonly minBytesPerSec: number
  /** Whether this content type's body is wanted; asked once, when the headers are there. */
  accepts(contentType: string | null): boolean
  /**
   * Asked in the turn that writes the request, after TCP and TLS: the start rule. False = nothing is written and the
   * outcome is `not-started`.
   */
  mayStart(): boolean
}

export type HttpError =
  | 'refused'
  | 'unreachable'
  | 'reset'
  | 'tls'
  | 'connect-timeout'
  | 'headers-timeout'
  | 'body-timeout'
  | 'total-timeout'
  | 'protocol'
  | 'address-refused'

export type Truncation = 'none' | 'length' | 'time' | 'disconnect' | 'type'

export type HttpOutcome =
  | { readonly kind: 'not-started' }
  | {
      readonly kind: 'response'
      readonly status: number
      readonly statusText: string
      readonly httpVersion: '1.0' | '1.1' | '2'
      /** As received, in order. */
      readonly headers: readonly (readonly [string, string])[]
      /** The body as received: transfer coding undone, content coding kept. For the archive. */
      readonly rawBody: Buffer
      /** The body with its content coding undone. For the parser. Equal to rawBody when there is no coding. */
      readonly body: Buffer
      readonly truncated: Truncation
      /** Why the body is cut, when it is not the cap: the error that ended it. */
      readonly bodyError: HttpError | null
      readonly times: HttpTimes
      /** The request exactly as written, head only. For the archive. */
      readonly requestHead: Buffer
    }
  | {
      /** No complete response head. `written`: whether a byte of the request left. */
      readonly kind: 'error'
      readonly error: HttpError
      readonly message: string
      readonly written: boolean
      readonly times: HttpTimes
    }

/** Wall clock and monotonic milliseconds. `startedAt`: the request's first byte; 0 if none left. */
export interface HttpTimes {
  readonly startedAtMs: number
  readonly endedAtMs: number
  readonly startedMonotonicMs: number
  readonly endedMonotonicMs: number
  /** From the first byte written to the response's head; 0 if there was none. */
  readonly headersMs: number
}

export interface HttpClient {
  /** `done` is called exactly once, never from within `request` itself. */
  request(request: HttpRequest, done: (outcome: HttpOutcome) => void): { cancel(): void }
  close(): Promise<void>
}
