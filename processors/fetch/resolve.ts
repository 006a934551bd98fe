import type { DnsResult } from '../../connectors/dns/types.ts'
import { isPublicAddress } from '../../connectors/http/addresses.ts'
import type { Fetched, Visit } from '../../schemas/types.ts'
import { fetchedBase } from './records.ts'
import type { FetchContext, FetchSettings } from './types.ts'

/** Works a `resolve` visit off: one look-up, one record, no request. */
export function startResolve(
  settings: FetchSettings,
  context: FetchContext,
  visit: Visit,
  done: () => void,
): { stop(): void } {
  let open = true
  const end = (): void => {
    open = false
    done()
  }
  settings.resolver.resolve(visit.host, (result) => {
    if (!open) return
    const value = resolved(visit, result, settings.allowPrivate, context.clock.nowMs())
    context.async.complete(() => context.forward({ key: `dns:${visit.host}`, value }, 'fetched'))
    end()
  })
  return {
    stop() {
      if (open) end()
    },
  }
}

function resolved(visit: Visit, result: DnsResult, allowPrivate: boolean, nowMs: number): Fetched {
  const record: Fetched = {
    ...fetchedBase({ visit, index: 0, hop: 0, url: visit.host }),
    outcomeKind: 'dns',
    endedAt: Math.round(nowMs),
  }
  if (result.kind === 'error') {
    return {
      ...record,
      error: result.error === 'timeout' ? 'dns-timeout' : result.error,
      errorMessage: result.message,
    }
  }
  const addresses = result.addresses.filter((address) => allowPrivate || isPublicAddress(address))
  if (addresses.length > 0) return { ...record, addresses, ttlMs: Math.round(result.ttlMs) }
  return {
    ...record,
    error: 'address-refused',
    errorMessage: `no public address: ${result.addresses.slice(0, 4).join(', ')}`,
  }
}
