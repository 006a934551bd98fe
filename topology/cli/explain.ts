import { Command } from 'commander'
import { createSystemClock } from '../../connectors/clock/system.ts'
import { usageError } from '../errors.ts'
import type { ExplainedHost, Explanation } from '../inspect.ts'
import { addSettings, readSettings } from './options.ts'
import { count, inTime, type Output, visible } from './output.ts'
import { ask } from './view.ts'

export function explainCommand(output: Output): Command {
  const command = new Command('explain')
    .description('What happened to a URL or a host, why, and what comes next.')
    .argument('<url|host>', 'with a scheme it is a URL, else a host')
    .option('--json', 'one JSON object: {url, key, state, reason, since, next, evidence, history}, or of the host')
    .addHelpText('after', '\nExamples:\n  $ weir explain https://example.org/private/\n  $ weir explain example.org\n')
  addSettings(command, ['data', 'crawl'])
  return command.action(async (subject: string, options: { json?: boolean }) => {
    if (subject.trim() === '') throw usageError('explaining "": give a URL or a host')
    const settings = readSettings(command)
    const nowMs = createSystemClock().nowMs()
    const host = hostOf(subject)
    const answer = host === null ? await ask(settings, 'explain', subject) : await ask(settings, 'host', host)
    if (options.json === true) output.data(JSON.stringify(answer))
    else
      for (const line of 'key' in answer ? aboutUrl(answer, nowMs) : aboutHost(answer, nowMs))
        output.data(visible(line))
  })
}

/** Null: the subject is a URL. A port is no part of a host here. */
function hostOf(subject: string): string | null {
  const host = /^([^:/?#]+|\[[^\]/]*\]):\d+$/.exec(subject)?.[1] ?? subject
  if (host === subject && /^[a-z][a-z0-9+.-]*:/i.test(subject)) return null
  if (/[/?#\s]/.test(host)) {
    throw usageError(`explaining "${subject}": a URL has a scheme (did you mean https://${subject.trim()}?)`)
  }
  return host
}

/** What a state means, for people; `null` as a reason stands for any. */
const meanings: readonly (readonly [state: string, reason: string | null, meaning: string])[] = [
  ['queued', null, 'it waits for its turn'],
  ['leased', null, 'a visit that is under way has it'],
  ['known', 'ok', 'it was fetched'],
  ['known', 'redirect', 'it leads to another URL'],
  ['known', 'missing', 'the server does not have it'],
  ['known', 'forbidden', 'the server does not give it to us'],
  ['known', 'failed', 'every attempt failed'],
  ['gone', null, 'the server has not had it for a while'],
  ['parked', 'robots', 'robots.txt forbids it'],
  ['parked', 'robots-unreachable', "its host's robots.txt cannot be read, and nothing is asked for without it"],
  ['parked', 'dns', 'its host has no usable address'],
  ['parked', 'back-off', 'its host is left alone for a while'],
  ['parked', 'budget', 'a limit on pages is reached'],
  ['parked', 'depth', 'it is further from a seed than --max-depth allows'],
  ['refused', 'out-of-scope', 'the scope leaves it out'],
  ['refused', null, 'it is never asked for'],
  ['unknown', null, 'this crawl has not met it'],
]

const whatComesNext: { readonly [state: string]: string } = {
  queued: 'asked for',
  known: 'asked for again',
  gone: 'asked for again',
  parked: 'looked at again',
}

const robotsMeanings: { readonly [verdict: string]: string } = {
  unknown: 'robots.txt is not read yet',
  rules: 'robots.txt is known',
  'allow-all': 'there is no robots.txt, all is allowed',
  'disallow-all': 'robots.txt cannot be read, nothing is asked for',
}

function aboutUrl(e: Explanation, nowMs: number): string[] {
  const reason = e.reason === 'none' ? '' : ` (${e.reason})`
  const meaning = meanings.find(([state, why]) => state === e.state && (why === null || why === e.reason))?.[2]
  const since = e.since === null ? '' : ` since ${e.since}`
  const lines = [e.key, `  is ${e.state}${reason}${since}${meaning === undefined ? '' : `: ${meaning}`}`]
  if (e.evidence !== null) lines.push(`  because: ${spokenEvidence(e.evidence)}`)
  if (e.next !== null) lines.push(`  next: ${whatComesNext[e.state] ?? 'looked at'} ${when(e.next, nowMs)}`)
  for (const h of e.history) lines.push(`  ${h.at}  ${h.what}${h.fetchId === null ? '' : `  [${h.fetchId}]`}`)
  return lines
}

function aboutHost(h: ExplainedHost, nowMs: number): string[] {
  const lines = [h.host]
  if (h.parked !== null) {
    const { reason, evidence, since, until } = h.parked
    lines.push(`  is parked (${reason}) since ${since}: ${spokenEvidence(evidence)}`)
    if (until !== null) lines.push(`  next: looked at again ${when(until, nowMs)}`)
  } else if (h.visit !== null) {
    lines.push(`  is visited (${h.visit.kind}) for ${count(h.visit.urls, 'URL')}  [${h.visit.leaseId}]`)
  } else if (h.next === null) lines.push('  is idle: nothing of it is to be asked for')
  else lines.push(`  next: may be asked ${when(h.next, nowMs)}`)
  lines.push(`  delay: ${h.delayMs} ms after each response (${h.delayReason})`)
  lines.push(`  address: ${h.address ?? 'not looked up yet'}`)
  const lastly = h.lastEndedAt === null ? '' : `, the last one at ${h.lastEndedAt}`
  lines.push(`  ${count(h.pages, 'page')} answered${lastly}`)
  for (const o of h.origins) {
    const until = o.expiresAt === null ? '' : ` until ${o.expiresAt}`
    const delay = o.crawlDelayMs === null ? '' : `, crawl-delay ${o.crawlDelayMs} ms`
    lines.push(`  ${o.origin}: ${robotsMeanings[o.robots] ?? o.robots}${until}${delay}`)
    if (o.parked !== null) lines.push(`    is parked (${o.parked.reason}): ${spokenEvidence(o.parked.evidence)}`)
    lines.push(`    ${o.queued} queued, ${o.blockedByRobots} forbidden by robots.txt`)
  }
  return lines
}

/** A status alone says little: "404", "503, 2 in a row". */
function spokenEvidence(evidence: string): string {
  return /^[1-5]\d\d\b/.test(evidence) ? `the server answered ${evidence}` : evidence
}

function when(at: string, nowMs: number): string {
  const ms = Date.parse(at) - nowMs
  return ms <= 0 ? `as soon as the crawl runs (due since ${at})` : `at ${at} (${inTime(ms)})`
}
