import type { ParkedUrls } from '../inspect.ts'

/** Where a command speaks: data on stdout, messages on stderr. */
export interface Output {
  /** A line, or bytes as they are. */
  data(data: string | Uint8Array): void
  message(text: string): void
  /** Resolves when whoever reads the data has caught up: for commands whose output is as long as their input. */
  drained(): Promise<void>
}

/**
 * A reader that has read enough (`weir … | head -1`) closes the pipe: then the process ends, quietly. A lost stderr
 * ends nothing.
 */
export function createOutput(stdout: NodeJS.WriteStream, stderr: NodeJS.WriteStream): Output {
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit()
    stderr.write(`weir: writing to standard output: ${error.message}\n`)
    process.exit(1)
  })
  stderr.on('error', () => {})
  return {
    data: (data) => void stdout.write(typeof data === 'string' ? `${data}\n` : data),
    message: (text) => void stderr.write(`${visible(text)}\n`),
    drained: () =>
      stdout.writableNeedDrain ? new Promise((done) => void stdout.once('drain', done)) : Promise.resolve(),
  }
}

/** One line, redrawn on a terminal, else repeated every `plainIntervalMs`. */
export interface LiveLine {
  show(text: string): void
  /** Before anything else is written: a message never begins in the middle of the line. */
  clear(): void
}

export function createLiveLine(
  stderr: NodeJS.WriteStream,
  monotonicMs: () => number,
  plainIntervalMs = 10_000,
): LiveLine {
  let shown = false
  let lastMs = monotonicMs()
  return {
    show(text) {
      if (stderr.isTTY) {
        stderr.write(`\r\x1b[2K${text.slice(0, Math.max(20, (stderr.columns || 100) - 1))}`)
        shown = true
      } else if (monotonicMs() - lastMs >= plainIntervalMs) {
        lastMs = monotonicMs()
        stderr.write(`${text}\n`)
      }
    },
    clear() {
      if (shown) stderr.write('\r\x1b[2K')
      shown = false
    },
  }
}

/** What servers say may hold control characters, which a terminal would obey: they are shown as U+FFFD. */
export function visible(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return text.replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, '\uFFFD')
}

export function count(n: number, one: string, many = `${one}s`): string {
  return `${n.toLocaleString('en-US')} ${n === 1 ? one : many}`
}

/** "in 3 min", "in 2 d", "now". */
export function inTime(ms: number): string {
  if (ms <= 0) return 'now'
  const units: [number, string][] = [
    [86_400_000, 'd'],
    [3_600_000, 'h'],
    [60_000, 'min'],
    [1000, 's'],
  ]
  for (const [size, name] of units) if (ms >= size) return `in ${Math.round(ms / size)} ${name}`
  return 'in under 1 s'
}

/** A table of URLs by state, most first; `queued/none` is `queued`. */
export function stateLines(states: { readonly [stateAndReason: string]: number }): string[] {
  return Object.entries(states)
    .filter(([, n]) => n > 0)
    .sort((a, b) => b[1] - a[1])
    .map(([state, n]) => `  ${state.replace(/\/none$/, '').padEnd(28)} ${n.toLocaleString('en-US').padStart(9)}`)
}

/** What waits, why and for how long, a line a reason. */
export function parkedLines(parked: readonly ParkedUrls[], nowMs: number): string[] {
  return parked.map(({ reason, count: n, next, example }) => {
    const when = next === null ? 'when the options allow it' : inTime(next - nowMs)
    return visible(
      `  ${count(n, 'URL')} parked: ${reason}, looked at again ${when}${example === null ? '' : ` (${example})`}`,
    )
  })
}
