import { ArchiveError } from '../connectors/archive/errors.ts'
import type { ArchiveReader } from '../connectors/archive/file.ts'
import type { ArchivedRecord } from '../connectors/archive/types.ts'
import type { Clock } from '../connectors/clock/types.ts'
import { contentCodings, createBodyDecoder } from '../connectors/http/decode.ts'
import type { Log } from '../connectors/log/types.ts'
import { headerValue } from '../processors/fetch/headers.ts'
import { parsedOf } from '../processors/fetch/records.ts'
import { createExtractor, type Extracted, type Extractor } from '../processors/parse/extract.ts'
import { type ExtractRules, rulesHash } from '../processors/parse/extract-rules.ts'
import { parsePage } from '../processors/parse/page.ts'
import type { Decision, Parsed } from '../schemas/types.ts'
import type { DataDirectory } from './data-directory.ts'
import { lastParsed, planPartition, type StoredPage } from './replay-plan.ts'
import { openReplayWriter } from './replay-writer.ts'

export interface ReplayParseOptions {
  /** Locked by the caller: nobody else writes. */
  readonly directory: Pick<DataDirectory, 'crawl' | 'useRules'>
  readonly log: Log
  readonly archive: ArchiveReader
  readonly clock: Clock
  readonly rules: ExtractRules
  /** The crawler's product token, as directives name it. */
  readonly agentToken: string
  /** False: nothing is written, a sample is parsed. */
  readonly apply: boolean
  readonly only?: { readonly host?: string; readonly urlPrefix?: string }
  /** Pages at most. */
  readonly limit?: number
  /** Once aborted it ends after the page under way, with everything written that was parsed. */
  readonly stopping?: AbortSignal
  onProgress?(progress: ReplayProgress): void
}

export interface ReplayProgress {
  /** Pages done of `total`, those without an archive record included. */
  readonly done: number
  readonly total: number
  readonly missing: number
  readonly pagesPerSec: number
}

export interface ReplaySample {
  readonly url: string
  /** Null = it has no `parsed` record. */
  readonly before: Extracted | null
  readonly after: Extracted
  /** Other fields of `parsed` that would change. */
  readonly alsoChanged: readonly string[]
}

export interface ReplayReport {
  readonly crawl: string
  readonly applied: boolean
  readonly ended: 'done' | 'interrupted'
  readonly parseVersion: number
  /** Stored pages that are, or without `apply` would be, parsed. */
  readonly pages: number
  /** Stored pages whose last record has this version already. */
  readonly alreadyDone: number
  /** Records written to `parsed`. */
  readonly written: number
  /** Of a type that nobody reads. */
  readonly skipped: number
  readonly parseFailed: number
  readonly extractFailed: number
  /** Pages whose archive record is not there or damaged, at most ten with the reason. */
  readonly missing: number
  readonly missingExamples: readonly { readonly url: string; readonly error: string }[]
  /** Without `apply`: at most three pages, those that change before others. */
  readonly sample: readonly ReplaySample[]
  readonly seconds: number
}

/**
 * Parses the stored body of every page again, under the rules now given, and writes the results to `parsed`: at the same
 * key and partition, with the fetch's identity and the raised version. One commit a batch; what a kill leaves undone the
 * next run does, and a page done twice gives the same record twice. Nothing is requested. Throws CommandError when the
 * log does not take a batch.
 */
export async function replayParse(options: ReplayParseOptions): Promise<ReplayReport> {
  const { directory, log, clock, rules, apply, only = {}, limit = Number.POSITIVE_INFINITY, stopping } = options
  const { crawl, partitions, rulesVersion } = directory.crawl
  const isCurrent = directory.crawl.rulesHash === rulesHash(rules)
  const parseVersion = apply ? directory.useRules(rulesHash(rules)) : rulesVersion + (isCurrent ? 0 : 1)
  const reparse = createReparse(options, createExtractor(rules), parseVersion)
  const startedMs = clock.monotonicMs()
  const tally = { written: 0, skipped: 0, parseFailed: 0, extractFailed: 0, missing: 0 }
  const missingExamples: { url: string; error: string }[] = []
  const plan = (partition: number) =>
    planPartition({ log, crawl, partition, only, parseVersion: isCurrent ? parseVersion : null })

  let pages = 0
  let alreadyDone = 0
  const candidates: { page: StoredPage; before: Parsed | undefined }[] = []
  for (let partition = 0; partition < partitions; partition++) {
    const planned = await plan(partition)
    const mine = planned.pages.slice(0, limit - pages)
    pages += mine.length
    alreadyDone += planned.done
    if (apply) continue
    const some = spread(mine, Math.ceil(maxSampled / partitions))
    const before = await lastParsed(log, crawl, partition, new Set(some.map(({ key }) => key)))
    for (const page of some) candidates.push({ page, before: before.get(page.key) })
  }

  const sample = apply ? [] : await takeSample()
  if (apply) await applyAll()
  const ended: ReplayReport['ended'] = stopping?.aborted ? 'interrupted' : 'done'
  const seconds = (clock.monotonicMs() - startedMs) / 1000
  const facts = { crawl, applied: apply, ended, parseVersion, pages, alreadyDone }
  return { ...facts, ...tally, missingExamples, sample, seconds }

  async function applyAll(): Promise<void> {
    const writer = await openReplayWriter(log, crawl, partitions)
    const workStartedMs = clock.monotonicMs()
    let done = 0
    try {
      for (let partition = 0; partition < partitions && done < pages; partition++) {
        for (const page of (await plan(partition)).pages) {
          if (done === pages || stopping?.aborted) break
          const outcome = await reparse(page)
          done++
          note(page, outcome)
          for (const { topic, value } of recordsFor(page, outcome)) writer.add(topic, page.key, value)
          if (writer.isFull()) await writer.commit()
          const seconds = (clock.monotonicMs() - workStartedMs) / 1000
          const pagesPerSec = seconds > 0 ? done / seconds : 0
          options.onProgress?.({ done, total: pages, missing: tally.missing, pagesPerSec })
        }
      }
      await writer.commit()
    } finally {
      await writer.close()
    }
  }

  function note(page: StoredPage, outcome: Outcome): void {
    if (outcome.kind === 'missing') {
      tally.missing++
      if (missingExamples.length < maxExamples) missingExamples.push({ url: page.url, error: outcome.error })
    } else if (outcome.kind === 'skipped') tally.skipped++
    else if (outcome.kind === 'failed') tally.parseFailed++
    else {
      tally.written += apply ? 1 : 0
      if (outcome.failure !== null) tally.extractFailed++
    }
  }

  function recordsFor(
    page: StoredPage,
    outcome: Outcome,
  ): { topic: 'parsed' | 'decisions'; value: Parsed | Decision }[] {
    const at = clock.nowMs()
    if (outcome.kind === 'failed')
      return [{ topic: 'decisions', value: decisionOf(page, 'parse-failed', outcome.error, at) }]
    if (outcome.kind !== 'parsed') return []
    const parsed = { topic: 'parsed' as const, value: outcome.value }
    if (outcome.failure === null) return [parsed]
    return [parsed, { topic: 'decisions', value: decisionOf(page, 'extract-failed', outcome.failure, at) }]
  }

  async function takeSample(): Promise<ReplaySample[]> {
    const changed: ReplaySample[] = []
    const equal: ReplaySample[] = []
    for (const { page, before } of candidates) {
      if (changed.length === maxSamples || stopping?.aborted) break
      const outcome = await reparse(page)
      note(page, outcome)
      if (outcome.kind !== 'parsed') continue
      const found = compare(page, before, outcome.value)
      const isEqual = JSON.stringify(found.before) === JSON.stringify(found.after) && found.alsoChanged.length === 0
      ;(isEqual ? equal : changed).push(found)
    }
    return [...changed, ...equal].slice(0, maxSamples)
  }
}

const maxSamples = 3
/** Pages that are looked at for a sample. */
const maxSampled = 60
const maxExamples = 10

type Outcome =
  | { readonly kind: 'parsed'; readonly value: Parsed; readonly failure: string | null }
  | { readonly kind: 'skipped' }
  | { readonly kind: 'failed'; readonly error: string }
  | { readonly kind: 'missing'; readonly error: string }

/** One page from the archive through the parser, as it went when it was fetched. */
function createReparse(
  { archive, agentToken }: ReplayParseOptions,
  extract: Extractor,
  parseVersion: number,
): (page: StoredPage) => Promise<Outcome> {
  return async (page) => {
    let record: ArchivedRecord
    try {
      record = await archive.read(page.archive)
    } catch (error) {
      if (error instanceof ArchiveError) return { kind: 'missing', error: error.message }
      throw error
    }
    const body = await decodeBody(record, page)
    if (body === null) return { kind: 'skipped' }
    const { url, host, fetchId, fetchedAt } = page
    const contentType = headerValue(record.headers, 'content-type')
    try {
      const parsed = parsePage({ url, contentType, headers: record.headers, body, agentToken })
      if (parsed === null) return { kind: 'skipped' }
      let extracted: Extracted = {}
      let failure: string | null = null
      try {
        extracted = extract({ host, contentType, body, charset: parsed.charset })
      } catch (error) {
        failure = messageOf(error)
      }
      const value = parsedOf({ url, fetchId, fetchedAt, parseVersion, extracted }, parsed)
      return { kind: 'parsed', value, failure }
    } catch (error) {
      return { kind: 'failed', error: messageOf(error) }
    }
  }
}

/** Content coding undone, up to where it was when it was fetched. Null: the coding is unknown. */
function decodeBody(record: ArchivedRecord, { bodyBytes, truncated }: StoredPage): Promise<Buffer> | Buffer | null {
  const fields = record.headers.filter(([name]) => name.toLowerCase() === 'content-encoding').map(([, value]) => value)
  const codings = contentCodings(fields)
  if (codings === null) return null
  if (codings.length === 0) return record.rawBody
  const decoder = createBodyDecoder(codings, bodyBytes, () => {})
  decoder.push(record.rawBody)
  return new Promise((resolve) => decoder.end(truncated === 'none', ({ body }) => resolve(body)))
}

function decisionOf(page: StoredPage, code: string, evidence: string, at: number): Decision {
  return {
    processor: 'parse',
    fetchId: page.fetchId,
    total: 1,
    reasons: [{ code, count: 1, examples: [page.url] }],
    evidence: evidence.slice(0, 300),
    at: Math.round(at),
  }
}

function compare(page: StoredPage, before: Parsed | undefined, after: Parsed): ReplaySample {
  const facts = (p: Parsed) => [
    p.title,
    p.snippet,
    p.text,
    p.language,
    p.canonicalUrl,
    p.noindex,
    p.nofollow,
    p.linkCount,
  ]
  const names = ['title', 'snippet', 'text', 'language', 'canonicalUrl', 'noindex', 'nofollow', 'linkCount']
  const [old, now] = [before === undefined ? [] : facts(before), facts(after)]
  return {
    url: page.url,
    before: before?.extracted ?? null,
    after: after.extracted,
    alsoChanged: before === undefined ? [] : names.filter((_, i) => old[i] !== now[i]),
  }
}

/** At most `n`, evenly from the whole. */
function spread<T>(all: readonly T[], n: number): T[] {
  if (all.length <= n) return [...all]
  return Array.from({ length: n }, (_, i) => all[Math.floor((i * all.length) / n)]!)
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
