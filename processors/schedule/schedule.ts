import type { Candidate, Fetched } from '../../schemas/types.ts'
import type { ProcessorSupplier, Record } from '../../topology/streams/types.ts'
import { admit, checkCandidate } from './admit.ts'
import { dueHosts, serveOrder } from './due.ts'
import { type ScheduleOptions, settingsOf } from './options.ts'
import { applyOutcome, checkOutcome } from './outcomes.ts'
import { forwardPolicy } from './policy.ts'
import type { HostRecord } from './records.ts'
import { createRobotsRules } from './robots-rules.ts'
import { openStores } from './stores.ts'
import {
  allKey,
  closeTurn,
  type Desk,
  decide,
  hostUrl,
  openTurn,
  type ScheduleInput,
  type ScheduleOutput,
  type Turn,
} from './turn.ts'
import { endVoidLease, expire, serve, spentBudget } from './visits.ts'

export const scheduleName = 'schedule'

/**
 * The only brain a host has: which of its URLs is asked for next, when, and what the answer means. One task has all
 * hosts of its sites; a host has at most one visit out. Sources: `unseen`, `fetched`. Sinks, by name: `host-scheduled`
 * (with `visitKeySerde` and `hostScheduledPartitioner`), `page-states`, `host-policies`, `decisions`. Stores: those of
 * `scheduleStores()`. Throws ScheduleInputError, before anything is written, on records that are no candidate or
 * outcome; what is only unexpected (a URL or host that is not known, a lease that is over) is a decision.
 */
export function createSchedule(
  options: ScheduleOptions,
): ProcessorSupplier<string, ScheduleInput, string, ScheduleOutput> {
  const settings = settingsOf(options)
  return (context) => {
    const stores = openStores((name) => context.getStateStore(name))
    const desk: Desk = {
      context,
      settings,
      stores,
      rules: createRobotsRules(stores, settings.robotsToken),
    }
    let sweep: { after: string | undefined } | null = { after: undefined }

    return {
      init() {
        sweep = { after: undefined }
        context.schedule(settings.punctuateMs, 'wall-clock-time', punctuate)
      },
      process(record: Record<string, ScheduleInput | null>) {
        const { key, value } = record
        if (value === null) return
        if (isOutcome(value)) takeOutcome(key, value)
        else takeCandidate(key, value)
      },
    }

    function takeCandidate(key: string, candidate: Candidate): void {
      checkCandidate(key, candidate)
      const turn = openTurn(desk, candidate.host, candidate.site)!
      admit(turn, key, candidate)
      finish(turn)
    }

    function takeOutcome(key: string, outcome: Fetched): void {
      checkOutcome(key, outcome)
      const turn = openTurn(desk, outcome.host)
      if (turn === undefined) {
        context.forward(
          {
            key: outcome.outcomeKind === 'page' ? key : `http://${outcome.host}/`,
            value: {
              processor: 'schedule',
              fetchId: outcome.fetchId,
              total: 1,
              reasons: [{ code: 'unknown-host', count: 1, examples: [] }],
              evidence: `an outcome of ${outcome.host}, which has no URL`,
              at: context.currentSystemTimeMs(),
            },
          },
          'decisions',
        )
        return
      }
      applyOutcome(turn, key, outcome)
      finish(turn)
    }

    /** Serves the host when it is free, and writes the turn. */
    function finish(turn: Turn): void {
      if (sweep === null && mayIssue(turn)) serve(turn)
      if (turn.policyChanged) forwardPolicy(turn)
      closeTurn(turn)
    }

    function mayIssue(turn: Turn): boolean {
      return (turn.sums.visits ?? 0) < settings.maxVisits
    }

    function punctuate(): void {
      if (!context.caughtUp()) return
      if (sweep !== null) {
        sweepHosts(sweep)
        return
      }
      const dueBy = context.currentSystemTimeMs() + settings.lookaheadMs
      for (const { host } of dueHosts(stores, true, dueBy - settings.lookaheadMs, maxHostsAPunctuation)) {
        const turn = openTurn(desk, host)!
        expire(turn)
        closeTurn(turn)
      }
      const turns = stores.counts.get(allKey)?.sums.turns ?? 0
      for (const { host } of serveOrder(dueHosts(stores, false, dueBy, maxHostsAPunctuation), turns)) {
        const turn = openTurn(desk, host)!
        if (!mayIssue(turn)) return
        serve(turn)
        if (turn.host.lease !== null) turn.sums.turns = ((turn.sums.turns ?? 0) + 1) % 2 ** 30
        if (turn.policyChanged) forwardPolicy(turn)
        closeTurn(turn)
      }
    }

    /**
     * Once, after the start and before anything is issued: ends the leases that are void, and lets hosts go whose
     * budgets or depths this process has raised, or whose address it may allow. A bounded number of hosts a punctuation.
     */
    function sweepHosts(at: { after: string | undefined }): void {
      const names: string[] = []
      let looked = 0
      for (const [name, host] of stores.hosts.range(at.after, undefined, {
        limit: maxHostsASweep,
      })) {
        looked++
        at.after = `${name}\0`
        const voidBefore = settings.leasesVoidBeforeMs ?? Number.NEGATIVE_INFINITY
        const isVoid = host.lease !== null && host.lease.issuedAt < voidBefore
        if (isVoid || host.park?.reason === 'budget' || host.deep > 0 || wasRefused(host)) names.push(name)
      }
      for (const name of names) {
        const turn = openTurn(desk, name)!
        if (settings.leasesVoidBeforeMs !== undefined) endVoidLease(turn, settings.leasesVoidBeforeMs)
        if (turn.host.park?.reason === 'budget' && spentBudget(turn) === undefined) {
          turn.host.park = null
          decide(turn, hostUrl(turn), 'budget-raised', 'the budget allows more again', null)
          forwardPolicy(turn)
        }
        if (wasRefused(turn.host)) {
          turn.host.park = null
          forwardPolicy(turn)
        }
        closeTurn(turn)
      }
      if (looked === maxHostsASweep) return
      sweep = null
      settings.onSwept?.(context.partition)
    }
  }
}

const maxHostsAPunctuation = 256
const maxHostsASweep = 10_000

/** Parked because its address was not allowed: what is allowed is this process's to say. */
function wasRefused(host: HostRecord): boolean {
  return host.park?.reason === 'dns' && host.park.evidence.startsWith('address-refused')
}

function isOutcome(value: ScheduleInput): value is Fetched {
  return 'outcomeKind' in value
}
