import type { Fetched } from '../../schemas/types.ts'
import { observeResponse, observeSuccess, observeThrottle } from './delay.ts'
import { backOffMs, rules } from './options.ts'
import type { OriginRecord } from './records.ts'
import type { HostFate } from './retry.ts'
import { add, parkHost, parkOrigin, type Turn } from './turn.ts'

/** When the outcome was had, as far as this task's clock can believe it. */
export function outcomeTime(turn: Turn, outcome: Fetched): number {
  const latest = turn.now + turn.desk.settings.skewMs
  return outcome.endedAt > 0 ? Math.min(outcome.endedAt, latest) : turn.now
}

/** Whether a byte of a request left. */
export function wasRequested(outcome: Fetched): boolean {
  return outcome.startedAt > 0 || outcome.status > 0
}

/** What every outcome tells of its host, a late one too: that it was asked, when it was done, how fast it answered. */
export function observe(turn: Turn, outcome: Fetched): void {
  if (!wasRequested(outcome)) return
  const { host } = turn
  const endedAt = outcomeTime(turn, outcome)
  host.lastEndedAt = Math.max(host.lastEndedAt ?? 0, endedAt)
  add(turn, 'requests', 1)
  if (outcome.status > 0 && outcome.startedAt > 0) {
    observeResponse(host, outcome.endedAt - outcome.startedAt, outcome.headersMs)
  }
}

/**
 * What an outcome does to its host. A failure counts once a visit: the other URLs of it were asked for before anyone
 * could know.
 */
export function strike(turn: Turn, fate: HostFate, outcome: Fetched, origin: OriginRecord | undefined): void {
  const { host } = turn
  const { settings } = turn.desk
  const atMs = outcomeTime(turn, outcome)
  const isFirst = host.lease === null || !host.lease.struck
  const struck = (): void => {
    if (host.lease !== null) host.lease.struck = true
  }
  switch (fate) {
    case 'success':
    case 'forbidden':
      observeSuccess(host, settings)
      host.networkFailures = 0
      host.serverErrors = 0
      host.throttles = 0
      if (outcome.status === 200) host.answered = true
      host.forbidden = fate === 'forbidden' ? host.forbidden + 1 : 0
      if (host.answered && host.forbidden >= rules.forbiddenInRow) {
        const what = `${host.forbidden} answers in a row like ${outcome.status}`
        host.forbidden = 0
        parkHost(turn, 'back-off', atMs + rules.forbiddenBackOffMs, what)
      }
      return
    case 'attempt': {
      if (!isFirst) return
      host.serverErrors++
      const over = host.serverErrors - rules.serverErrorsInRow + 1
      if (over < 1) return
      struck()
      const waitMs = backOffMs(rules.networkFailureMs, 2, over, rules.maxNetworkFailureMs)
      const what = outcome.error === 'none' ? `${outcome.status}` : outcome.error
      parkHost(turn, 'back-off', atMs + waitMs, `${host.serverErrors} failures in a row, last: ${what}`)
      return
    }
    case 'throttled':
      throttle(turn, outcome)
      return
    case 'network': {
      if (!isFirst) return
      struck()
      host.networkFailures++
      const waitMs = backOffMs(rules.networkFailureMs, 2, host.networkFailures, rules.maxNetworkFailureMs)
      parkHost(turn, 'back-off', atMs + waitMs, errorText(outcome))
      return
    }
    case 'tls':
      if (origin !== undefined) parkOrigin(turn, origin, 'back-off', atMs + rules.tlsFailureMs, errorText(outcome))
      return
    case 'name-failure': {
      if (!isFirst) return
      struck()
      host.nameFailures++
      forgetAddress(turn)
      const waits = rules.nameFailureMs
      const waitMs = waits[Math.min(host.nameFailures, waits.length) - 1]!
      parkHost(turn, 'dns', atMs + waitMs, errorText(outcome))
      return
    }
    case 'dns-failure': {
      if (!isFirst) return
      struck()
      host.dnsFailures++
      forgetAddress(turn)
      const waitMs = backOffMs(rules.dnsFailureMs, 2, host.dnsFailures, rules.maxDnsFailureMs)
      parkHost(turn, 'dns', atMs + waitMs, errorText(outcome))
      return
    }
    case 'address-changed':
      forgetAddress(turn)
      return
    case 'address-refused':
      forgetAddress(turn)
      parkHost(turn, 'dns', atMs + rules.addressRefusedMs, errorText(outcome))
  }
}

/**
 * 429 or 503: with Retry-After the whole host waits as long as it says, at most a day; without, the delay doubles and
 * one passes. A page of it that always answers so goes to the end of its queue and delays nobody for ever.
 */
export function throttle(turn: Turn, outcome: Fetched): void {
  const { host } = turn
  const atMs = outcomeTime(turn, outcome)
  const asked = outcome.retryAfterMs ?? 0
  if (asked > 0) {
    const waitMs = Math.min(asked, rules.maxRetryAfterMs)
    parkHost(turn, 'back-off', atMs + waitMs, `${outcome.status}, Retry-After ${Math.ceil(waitMs / 1000)} s`)
    return
  }
  if (host.lease?.struck === true) return
  if (host.lease !== null) host.lease.struck = true
  host.throttles++
  observeThrottle(host, turn.desk.settings)
  parkHost(turn, 'back-off', atMs + host.throttledMs, `${outcome.status}, ${host.throttles} in a row`)
}

export function errorText(outcome: Fetched): string {
  return outcome.errorMessage === null ? outcome.error : `${outcome.error}: ${outcome.errorMessage}`
}

function forgetAddress(turn: Turn): void {
  turn.host.addressExpiresAt = 0
}
