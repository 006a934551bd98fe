import { readFileSync } from 'node:fs'
import { type ExtractRules, readExtractRules } from '../processors/parse/extract-rules.ts'
import { usageError } from './errors.ts'

/**
 * The one list of options. It gives the command line's flags and help, the environment variables, the settings file,
 * `.env.example` and the README's table (a test compares them).
 */
export interface Setting<T extends SettingValue = SettingValue> {
  /** camelCase, with its unit. Flag: kebab-case; environment: WEIR_ + SNAKE_CASE. */
  readonly name: SettingName
  readonly kind: 'integer' | 'flag' | 'text' | 'choice'
  readonly default: T
  readonly choices?: readonly string[]
  readonly min?: number
  readonly max?: number
  /** The word that lifts a limit. */
  readonly none?: boolean
  /** Shown in help as <…>. */
  readonly placeholder?: string
  readonly help: string
}
export type SettingValue = string | number | boolean | null

export interface Settings {
  data: string
  crawl: string | null
  scope: 'host' | 'domain' | 'any'
  maxDepth: number | null
  maxPages: number | null
  maxPagesPerHost: number | null
  delayMs: number
  userAgent: string
  contact: string | null
  allowPrivate: boolean
  durationS: number | null
  patienceS: number
  requestTimeoutMs: number
  maxBodyBytes: number
  maxUrlLength: number
  maxInFlight: number
  recrawlIntervalS: number
  analytics: boolean
  /** Of the settings file alone. */
  extract: ExtractRules
}
export type SettingName = Exclude<keyof Settings, 'extract'>

const year = 366 * 86_400

export const settings: readonly Setting[] = [
  {
    name: 'data',
    kind: 'text',
    default: 'weir-data',
    placeholder: 'dir',
    help: 'directory that holds the crawl: log, stores and archive',
  },
  {
    name: 'crawl',
    kind: 'text',
    default: null,
    placeholder: 'name',
    help: 'name of the crawl; a directory of another one is refused (default: the directory\'s own, or "weir")',
  },
  {
    name: 'scope',
    kind: 'choice',
    choices: ['host', 'domain', 'any'],
    default: 'host',
    help: "which links to follow: the seeds' hosts, their registrable domains, or any",
  },
  {
    name: 'maxDepth',
    kind: 'integer',
    min: 0,
    max: 255,
    none: true,
    default: 10,
    placeholder: 'n',
    help: 'clicks from a seed; deeper pages are parked; "none" lifts it',
  },
  {
    name: 'maxPages',
    kind: 'integer',
    min: 1,
    none: true,
    default: null,
    placeholder: 'n',
    help: 'stop starting pages after n; the rest is parked',
  },
  {
    name: 'maxPagesPerHost',
    kind: 'integer',
    min: 1,
    none: true,
    default: null,
    placeholder: 'n',
    help: 'the same for each host',
  },
  {
    name: 'delayMs',
    kind: 'integer',
    min: 0,
    max: 86_400_000,
    default: 1000,
    placeholder: 'ms',
    help: "least gap between a response's end and the next request to that host; 0 only for private addresses",
  },
  {
    name: 'userAgent',
    kind: 'text',
    default: 'weir/0.1',
    placeholder: 'text',
    help: 'User-Agent; its leading letters are the token that robots.txt addresses',
  },
  {
    name: 'contact',
    kind: 'text',
    default: null,
    placeholder: 'url|email',
    help: 'who answers for this crawl; sent in the User-Agent; needed for the public web',
  },
  {
    name: 'allowPrivate',
    kind: 'flag',
    default: false,
    help: 'allow loopback, private and other special-purpose addresses',
  },
  {
    name: 'durationS',
    kind: 'integer',
    min: 1,
    max: year,
    none: true,
    default: null,
    placeholder: 's',
    help: 'stop after s seconds, keeping everything',
  },
  {
    name: 'patienceS',
    kind: 'integer',
    min: 0,
    max: year,
    default: 120,
    placeholder: 's',
    help: 'wait for retries that are due within s seconds; later ones keep nothing alive',
  },
  {
    name: 'requestTimeoutMs',
    kind: 'integer',
    min: 1000,
    max: 600_000,
    default: 60_000,
    placeholder: 'ms',
    help: 'total deadline of one request',
  },
  {
    name: 'maxBodyBytes',
    kind: 'integer',
    min: 1024,
    max: 1_073_741_824,
    default: 10_485_760,
    placeholder: 'bytes',
    help: 'cap on a decoded page; the rest is cut and marked',
  },
  {
    name: 'maxUrlLength',
    kind: 'integer',
    min: 64,
    max: 8192,
    default: 2048,
    placeholder: 'n',
    help: 'longer URLs are refused',
  },
  {
    name: 'maxInFlight',
    kind: 'integer',
    min: 1,
    max: 10_000,
    default: 256,
    placeholder: 'n',
    help: 'visits to different hosts at the same time',
  },
  {
    name: 'recrawlIntervalS',
    kind: 'integer',
    min: 3600,
    max: 30 * 86_400,
    default: 7 * 86_400,
    placeholder: 's',
    help: 'first interval until a page is fetched again',
  },
  {
    name: 'analytics',
    kind: 'flag',
    default: true,
    help: 'leave ClickHouse out: nothing to ask in SQL (`weir sql`, `weir query`); a later crawl without it catches up',
  },
]

export const defaultSettings: Readonly<Settings> = Object.freeze(
  Object.fromEntries([...settings.map((s) => [s.name, s.default]), ['extract', {}]]) as unknown as Settings,
)

/** The flag that gives a setting: of a switch that is on by default, the one that turns it off. */
export function flagOf(name: string): string {
  const isOn = settings.some((s) => s.name === name && s.default === true)
  return `--${isOn ? 'no-' : ''}${name.replace(/[A-Z]/g, (c) => `-${c.toLowerCase()}`)}`
}
export const environmentOf = (name: string): string => `WEIR_${name.replace(/[A-Z]/g, (c) => `_${c}`).toUpperCase()}`

/** Variables that belong to the project but are no settings. */
const otherVariables = new Set([
  'WEIR_TEST_DATA',
  'WEIR_CONFIG',
  'WEIR_TEST_SEED',
  'WEIR_BENCH_FARM',
  'WEIR_BENCH_USAGE',
])

/**
 * Flags win over the environment, which wins over the settings file. All faults are reported together, each with where
 * it stands. `flags` has raw texts (or true for a flag).
 */
export function resolveSettings(
  flags: Readonly<{ [name: string]: string | boolean | undefined }>,
  environment: Readonly<{ [name: string]: string | undefined }>,
  configFile: string | undefined,
): Settings {
  const faults: string[] = []
  const values: { [name: string]: SettingValue | ExtractRules } = { ...defaultSettings }
  const take = (setting: Setting, raw: unknown, where: string) => {
    const result = parseSetting(setting, raw)
    if ('fault' in result) faults.push(`${where}: ${result.fault}`)
    else values[setting.name] = result.value
  }

  const file = configFile ?? environment.WEIR_CONFIG
  if (file !== undefined) {
    for (const [key, raw] of Object.entries(readConfig(file))) {
      if (key === 'extract') {
        const read = readExtractRules(raw)
        if ('rules' in read) values.extract = read.rules
        else faults.push(...read.faults.map((fault) => `${file}: ${fault}`))
        continue
      }
      const setting = settings.find((s) => s.name === key)
      if (setting === undefined)
        faults.push(`${file}: unknown setting "${key}"${suggestion(key, [...settings.map((s) => s.name), 'extract'])}`)
      else take(setting, raw, `${file}: ${key}`)
    }
  }
  for (const [key, raw] of Object.entries(environment)) {
    if (!key.startsWith('WEIR_') || otherVariables.has(key) || raw === undefined) continue
    const setting = settings.find((s) => environmentOf(s.name) === key)
    if (setting === undefined) {
      faults.push(
        `environment: unknown variable ${key}${suggestion(
          key,
          settings.map((s) => environmentOf(s.name)),
        )}`,
      )
    } else take(setting, raw, `environment: ${key}`)
  }
  for (const [key, raw] of Object.entries(flags)) {
    const setting = settings.find((s) => s.name === key)
    if (setting !== undefined && raw !== undefined) take(setting, raw, flagOf(key))
  }
  if (faults.length > 0) throw usageError(`reading the settings: ${faults.join('; ')}`)
  return values as unknown as Settings
}

function readConfig(file: string): { [key: string]: unknown } {
  try {
    const value: unknown = JSON.parse(readFileSync(file, 'utf8'))
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as { [key: string]: unknown }
  } catch (error) {
    throw usageError(`reading the settings file ${file}: ${(error as Error).message}`)
  }
  throw usageError(`reading the settings file ${file}: it must hold one JSON object`)
}

function parseSetting(setting: Setting, raw: unknown): { value: SettingValue } | { fault: string } {
  switch (setting.kind) {
    case 'flag':
      if (raw === true || raw === 'true' || raw === '1') return { value: true }
      if (raw === false || raw === 'false' || raw === '0') return { value: false }
      return { fault: `must be true or false, not "${String(raw)}"` }
    case 'integer': {
      if (setting.none && (raw === 'none' || raw === null)) return { value: null }
      const value =
        typeof raw === 'number' ? raw : typeof raw === 'string' && /^\d{1,15}$/.test(raw) ? Number(raw) : Number.NaN
      const min = setting.min ?? 0
      const max = setting.max ?? Number.MAX_SAFE_INTEGER
      if (Number.isInteger(value) && value >= min && value <= max) return { value }
      const range =
        max === Number.MAX_SAFE_INTEGER ? `a whole number of at least ${min}` : `a whole number from ${min} to ${max}`
      return { fault: `must be ${range}${setting.none ? ' or "none"' : ''}, not "${String(raw)}"` }
    }
    case 'choice':
      if (typeof raw === 'string' && setting.choices!.includes(raw)) return { value: raw }
      return { fault: `must be one of ${setting.choices!.join(', ')}, not "${String(raw)}"` }
    case 'text':
      if (typeof raw === 'string' && raw.trim() !== '' && !/[\r\n\0]/.test(raw)) return { value: raw.trim() }
      return { fault: 'must be a text of one line' }
  }
}

/** " (did you mean X?)" when one known name is at most two edits away. */
export function suggestion(name: string, known: readonly string[]): string {
  const best = known
    .map((k) => [editDistance(name.toLowerCase(), k.toLowerCase()), k] as const)
    .sort((a, b) => a[0] - b[0])[0]
  return best !== undefined && best[0] <= 2 ? ` (did you mean ${best[1]}?)` : ''
}

function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      row.push(Math.min(previous[j]! + 1, row[j - 1]! + 1, previous[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)))
    }
    previous = row
  }
  return previous[b.length]!
}

/** The User-Agent with its contact, and the token for robots.txt: the leading `[A-Za-z_-]+`. */
export function agentOf(s: Pick<Settings, 'userAgent' | 'contact'>): {
  userAgent: string
  token: string
  hasContact: boolean
} {
  const token = /^[A-Za-z_-]+/.exec(s.userAgent)?.[0]
  if (token === undefined) {
    throw usageError(
      `--user-agent: it must begin with letters, "_" or "-": they are the token that robots.txt addresses, not "${s.userAgent}"`,
    )
  }
  const inside = /\+(mailto:|https?:)/.test(s.userAgent)
  if (s.contact !== null && !/^(mailto:)?[^\s@]+@[^\s@]+$|^https?:\/\/[^\s]+$/.test(s.contact)) {
    throw usageError(`--contact: it must be an e-mail address or an http(s) URL, not "${s.contact}"`)
  }
  const contact =
    s.contact === null || inside
      ? ''
      : ` (+${s.contact.includes('@') && !/^(mailto|https?):/.test(s.contact) ? 'mailto:' : ''}${s.contact})`
  return { userAgent: s.userAgent + contact, token, hasContact: inside || s.contact !== null }
}
