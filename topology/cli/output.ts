/** Where a command speaks: data on stdout, messages on stderr. */
export interface Output {
  data(text: string): void
  message(text: string): void
  readonly messageIsTerminal: boolean
}

export function createOutput(stdout: NodeJS.WriteStream, stderr: NodeJS.WriteStream): Output {
  return {
    data: (text) => void stdout.write(`${text}\n`),
    message: (text) => void stderr.write(`${text}\n`),
    messageIsTerminal: stderr.isTTY === true,
  }
}

/** One line, redrawn on a terminal, else repeated every `plainIntervalMs`. */
export interface LiveLine {
  show(text: string): void
  clear(): void
}

export function createLiveLine(stderr: NodeJS.WriteStream, nowMs: () => number, plainIntervalMs = 10_000): LiveLine {
  let shown = false
  let lastMs = nowMs()
  return {
    show(text) {
      if (stderr.isTTY) {
        stderr.write(`\r\x1b[2K${text.slice(0, Math.max(20, (stderr.columns ?? 100) - 1))}`)
        shown = true
      } else if (nowMs() - lastMs >= plainIntervalMs) {
        lastMs = nowMs()
        stderr.write(`${text}\n`)
      }
    },
    clear() {
      if (shown) stderr.write('\r\x1b[2K')
      shown = false
    },
  }
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

export function iso(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}
