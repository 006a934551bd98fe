import type { Candidate } from '../../schemas/types.ts'
import { ScheduleInputError } from './errors.ts'
import { enqueue, parkDeep, settleUntil } from './frontier.ts'
import { classOf, pageKey } from './keys.ts'
import { newOrigin, newPage } from './records.ts'
import { announcePage, decide, type Turn } from './turn.ts'

const maxOrigins = 64
const maxHostLength = 253

/** Scheme, host and port of an absolute http or https URL in its serialized form. Throws ScheduleInputError. */
export function originOf(url: string): string {
  const start = url.startsWith('https://') ? 8 : url.startsWith('http://') ? 7 : 0
  if (start === 0) throw new ScheduleInputError(`admitting ${url.slice(0, 200)}: no http or https URL`)
  const end = url.slice(start).search(/[/?#]/)
  const origin = end < 0 ? url : url.slice(0, start + end)
  if (origin.length === start || origin.length > maxHostLength + 16) {
    throw new ScheduleInputError(`admitting ${url.slice(0, 200)}: no host of a usable length`)
  }
  return origin
}

/** What a candidate must be before anything is written. Throws ScheduleInputError: the record goes to dead letters. */
export function checkCandidate(key: string, candidate: Candidate): void {
  if (key === '') throw new ScheduleInputError('admitting a URL: the key is empty')
  const { host, site } = candidate
  if (host === '' || site === '' || Math.max(host.length, site.length) > maxHostLength || host.includes('\0')) {
    throw new ScheduleInputError(`admitting ${key.slice(0, 200)}: host ${JSON.stringify(host.slice(0, 260))}`)
  }
  originOf(candidate.fetchUrl)
}

/**
 * A URL that dedupe has let through: admitted when it is new. A known one comes again with a lesser depth (`improved`):
 * it takes the depth, leaves a park that the depth was the cause of, and when it is gone it is asked for again.
 */
export function admit(turn: Turn, key: string, candidate: Candidate): void {
  const hash = pageKey(key)
  const { desk, now } = turn
  const { maxDepth } = desk.settings
  const known = desk.stores.pages.get(hash)
  if (known === undefined) {
    const page = newPage({
      url: key,
      fetchUrl: candidate.fetchUrl,
      host: turn.name,
      origin: originIndex(turn, originOf(candidate.fetchUrl)),
      entryKind: candidate.entryKind,
      seedChain: candidate.seedChain,
      depth: Math.max(0, candidate.depth),
      hops: Math.max(0, candidate.hops),
      since: now,
    })
    if (maxDepth !== null && page.depth > maxDepth) {
      const evidence = `depth ${page.depth}, at most ${maxDepth}`
      parkDeep(turn, page, hash, evidence)
      decide(turn, key, 'depth', evidence, null)
    } else {
      enqueue(turn, page, hash)
    }
    announcePage(turn, page, hash)
    return
  }
  if (known.host !== turn.name) {
    decide(turn, key, 'odd-candidate', `host ${turn.name}, admitted under ${known.host}`, null)
    return
  }
  const isNearer = candidate.depth < known.depth && candidate.depth >= 0
  const isChain = candidate.seedChain && !known.seedChain
  if (!isNearer && !isChain) return
  known.seedChain ||= candidate.seedChain
  if (isNearer) {
    // The place in the frontier names the class or the depth: out under the old one, in under the new.
    const { place } = known
    if (place === 'deep') enqueue(turn, known, hash)
    known.depth = candidate.depth
    if (place === 'deep' && maxDepth !== null && known.depth > maxDepth) {
      parkDeep(turn, known, hash, `depth ${known.depth}, at most ${maxDepth}`)
    } else if (known.place === 'ready' && known.queueClass !== classOf(known.depth)) {
      enqueue(turn, known, hash)
    } else if (known.state === 'gone') {
      settleUntil(turn, known, hash, {
        state: 'gone',
        reason: known.reason,
        evidence: 'linked again',
        next: now,
      })
    }
  }
  announcePage(turn, known, hash)
}

function originIndex(turn: Turn, origin: string): number {
  const { origins } = turn.host
  const index = origins.findIndex((o) => o.origin === origin)
  if (index >= 0) return index
  if (origins.length >= maxOrigins) {
    throw new ScheduleInputError(`admitting a URL of ${origin}: the host has ${maxOrigins} origins already`)
  }
  origins.push(newOrigin(origin))
  return origins.length - 1
}
