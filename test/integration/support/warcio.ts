import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface WarcioTool {
  /** `warcio check`: every record can be read and every digest is right. `problems` is empty when all is well. */
  check(files: readonly string[]): {
    readonly ok: boolean
    readonly problems: string
  }
  /** `warcio index` with these fields: one object a record, in order. */
  index(file: string, fields: readonly string[]): Record<string, string>[]
}

export type Warcio = { readonly tool: WarcioTool } | { readonly tool: null; readonly reason: string }

/** PyPI's warcio in a virtual environment under the temporary directory, made when it is not there yet. */
export function findWarcio(): Warcio {
  const home = join(tmpdir(), 'weir-test-warcio')
  const bin = join(home, 'bin', 'warcio')
  if (!existsSync(bin)) {
    const venv = run('python3', ['-m', 'venv', home])
    if (venv.status !== 0) {
      return { tool: null, reason: `warcio: making a virtual environment failed: ${venv.out}${venv.err}` }
    }
    const pip = run(join(home, 'bin', 'pip'), ['install', '--quiet', '--disable-pip-version-check', 'warcio'])
    if (pip.status !== 0 || !existsSync(bin)) return { tool: null, reason: `warcio: pip install failed: ${pip.err}` }
  }
  return {
    tool: {
      check(files) {
        const { status, out, err } = run(bin, ['check', ...files])
        return { ok: status === 0, problems: status === 0 ? '' : `${out}${err}`.trim() || `exit status ${status}` }
      },
      index(file, fields) {
        const { status, out, err } = run(bin, ['index', '-f', fields.join(','), file])
        if (status !== 0) throw new Error(`indexing ${file}: ${err}`)
        const lines = out.split('\n').filter((line) => line !== '')
        return lines.map((line) => JSON.parse(line) as Record<string, string>)
      },
    },
  }
}

function run(command: string, args: readonly string[]): { status: number | null; out: string; err: string } {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    encoding: 'utf8',
    timeout: 300_000,
    maxBuffer: 256 * 1_048_576,
  })
  return { status, out: stdout ?? '', err: `${stderr ?? ''}${error?.message ?? ''}` }
}
