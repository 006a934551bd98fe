import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { z } from 'zod'
import { dataDirectoryError } from './errors.ts'

export interface DataDirectoryOptions {
  readonly dir: string
  /** Makes the directory and its crawl.json when there is none. */
  readonly create?: { readonly crawl: string; readonly partitions: number; readonly createdAtMs: number }
  /** The crawl that the caller expects; another one is refused. */
  readonly crawl?: string | undefined
  /** Excludes every other process until `release` (default true). */
  readonly lock?: boolean
}

const formatVersion = 1

const crawlFileSchema = z.object({
  format: z.number().int(),
  crawl: z.string(),
  createdAt: z.iso.datetime(),
  partitions: z.number().int().positive(),
  pslVersion: z.string(),
  /** Of what parse makes of a page, and the hash of the parser and rules that it stands for. */
  rulesVersion: z.number().int(),
  rulesHash: z.string().optional(),
})
export type CrawlFile = z.infer<typeof crawlFileSchema>

export interface DataDirectory {
  readonly dir: string
  readonly crawl: CrawlFile
  /** True when this call made it. */
  readonly created: boolean
  path(part: 'log' | 'stores' | 'archive' | 'control.json'): string
  /** The version of these parse rules: the one in crawl.json, raised there first if they are not those used last. */
  useRules(hash: string): number
  release(): void
}

/**
 * Opens a crawl's directory. Throws a CommandError with exit code 3 that names the directory and what is wrong with it;
 * nothing in it is changed then.
 */
export function openDataDirectory(options: DataDirectoryOptions): DataDirectory {
  const dir = resolve(options.dir)
  const file = join(dir, 'crawl.json')
  const existed = existsSync(file)
  if (!existed) {
    if (options.create === undefined) {
      throw dataDirectoryError(
        'data-missing',
        `opening the data directory ${dir}: there is no crawl in it (no crawl.json)`,
      )
    }
    refuseForeignFiles(dir)
  }
  const before = existed ? readCrawlFile(file, options.crawl) : undefined
  makeDirectory(dir)
  const release = options.lock === false ? () => {} : takeLock(dir)
  try {
    const crawl = before ?? writeCrawlFile(file, options.create!)
    return {
      dir,
      crawl,
      created: !existed,
      path: (part) => join(dir, part),
      useRules: (hash) => useRules(file, hash),
      release,
    }
  } catch (error) {
    release()
    throw error
  }
}

function makeDirectory(dir: string): void {
  try {
    mkdirSync(dir, { recursive: true })
  } catch (error) {
    throw dataDirectoryError('data-unusable', `making the data directory ${dir}: ${(error as Error).message}`, {
      cause: error,
    })
  }
}

function refuseForeignFiles(dir: string): void {
  let names: string[]
  try {
    names = readdirSync(dir)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
    throw dataDirectoryError('data-unusable', `opening the data directory ${dir}: ${(error as Error).message}`, {
      cause: error,
    })
  }
  // LOCK, or a half-written crawl.json, is what a process leaves that died while it made the directory.
  const foreign = names.filter((name) => !/^(LOCK(-journal)?|crawl\.json\.tmp)$/.test(name))
  if (foreign.length > 0) {
    throw dataDirectoryError(
      'data-foreign',
      `opening the data directory ${dir}: it holds other files (${foreign.slice(0, 3).join(', ')}) and no crawl.json; give an empty or a new directory`,
    )
  }
}

function readCrawlFile(file: string, expected: string | undefined): CrawlFile {
  let value: unknown
  try {
    value = JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw dataDirectoryError('data-corrupt', `reading ${file}: ${(error as Error).message}`, { cause: error })
  }
  const format = (value as { format?: unknown } | null)?.format
  if (typeof format === 'number' && format > formatVersion) {
    throw dataDirectoryError(
      'data-newer',
      `reading ${file}: its format is ${format}, this version of weir knows ${formatVersion}; use a newer weir`,
    )
  }
  const parsed = crawlFileSchema.safeParse(value)
  if (!parsed.success) {
    const issue = parsed.error.issues[0]!
    throw dataDirectoryError('data-corrupt', `reading ${file}: ${issue.path.join('.')}: ${issue.message}`)
  }
  if (expected !== undefined && parsed.data.crawl !== expected) {
    throw dataDirectoryError(
      'data-other-crawl',
      `opening ${file}: it belongs to the crawl "${parsed.data.crawl}", not to "${expected}"; give another --data or another --crawl`,
    )
  }
  return parsed.data
}

function writeCrawlFile(file: string, create: NonNullable<DataDirectoryOptions['create']>): CrawlFile {
  const crawl: CrawlFile = {
    format: formatVersion,
    crawl: create.crawl,
    createdAt: new Date(create.createdAtMs).toISOString(),
    partitions: create.partitions,
    pslVersion: pslVersion(),
    // No rules were used yet: the first ones raise it.
    rulesVersion: 0,
  }
  replaceCrawlFile(file, crawl)
  return crawl
}

/** Whole or not at all, also at a power cut. */
function replaceCrawlFile(file: string, crawl: CrawlFile): void {
  writeFileSync(`${file}.tmp`, `${JSON.stringify(crawl, null, 2)}\n`, { flush: true })
  renameSync(`${file}.tmp`, file)
}

function useRules(file: string, hash: string): number {
  const crawl = readCrawlFile(file, undefined)
  if (crawl.rulesHash === hash) return crawl.rulesVersion
  const rulesVersion = crawl.rulesVersion + 1
  replaceCrawlFile(file, { ...crawl, rulesVersion, rulesHash: hash })
  return rulesVersion
}

/** The public suffix list comes with tldts: its version is the list's. */
function pslVersion(): string {
  const manifest = new URL('../node_modules/tldts/package.json', import.meta.url)
  return `tldts-${(JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version}`
}

/** An exclusive SQLite transaction: the system frees it when the process dies, `kill -9` included. */
function takeLock(dir: string): () => void {
  const file = join(dir, 'LOCK')
  let db: DatabaseSync | undefined
  try {
    db = new DatabaseSync(file, { timeout: 0 })
    db.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    db?.close()
    const busy = (error as { errcode?: number }).errcode === 5
    throw dataDirectoryError(
      busy ? 'data-locked' : 'data-unusable',
      busy
        ? `opening the data directory ${dir}: another weir process is using it${runningPid(dir)}`
        : `locking the data directory ${dir}: ${(error as Error).message}`,
      { cause: error },
    )
  }
  return () => {
    rmSync(join(dir, 'control.json'), { force: true })
    db.close()
  }
}

function runningPid(dir: string): string {
  try {
    const control = JSON.parse(readFileSync(join(dir, 'control.json'), 'utf8')) as { pid?: number }
    return control.pid === undefined ? '' : ` (process ${control.pid})`
  } catch {
    return ''
  }
}
