import type { Clock } from '../clock/types.ts'
import { isPublicAddress } from './addresses.ts'
import type { HttpClient } from './types.ts'

/** A client that connects to nothing public, wherever links and names lead: for a crawl without a contact. */
export function privateOnly(http: HttpClient, clock: Clock): HttpClient {
  return {
    request(request, done) {
      if (!isPublicAddress(request.address)) return http.request(request, done)
      const times = {
        startedAtMs: 0,
        endedAtMs: clock.nowMs(),
        startedMonotonicMs: 0,
        endedMonotonicMs: 0,
        headersMs: 0,
      }
      const message = `${request.address} is a public address, and no contact is set (--contact)`
      clock.setTimer(0, () => done({ kind: 'error', error: 'unreachable', message, written: false, times }))
      return { cancel() {} }
    },
    close: () => http.close(),
  }
}
