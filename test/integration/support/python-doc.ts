import { spawnSync } from 'node:child_process'
import { existsSync, globSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export type PythonDoc =
  | { readonly root: string; readonly package: string }
  /** The test that wanted it is skipped and says why. */
  | { readonly root: null; readonly reason: string }

/**
 * The HTML of Debian's Python documentation (some 500 pages): installed, or downloaded and unpacked into a cache under
 * the temporary directory, which needs apt but not root. Files are as in the package; links to other packages' files
 * (jquery) may lead nowhere.
 */
export function findPythonDoc(): PythonDoc {
  const installed = newest(globSync('/usr/share/doc/python3.*/html/index.html'))
  if (installed !== null) return { root: installed, package: 'installed' }
  const cache = join(tmpdir(), 'weir-test-python-doc')
  const cached = newest(globSync(join(cache, 'usr/share/doc/python3.*/html/index.html')))
  if (cached !== null) return { root: cached, package: cache }
  if (!existsSync('/usr/bin/apt-get')) return { root: null, reason: 'python3-doc: there is no apt-get here' }

  const depends = run('apt-cache', ['depends', 'python3-doc'], tmpdir())
  const name = /\bDepends: (python3\.\d+-doc)\b/.exec(depends.out)?.[1]
  if (name === undefined)
    return {
      root: null,
      reason: `python3-doc: apt does not know it (apt-get update?) ${depends.err}`,
    }
  const work = mkdtempSync(join(tmpdir(), 'weir-test-python-doc-'))
  try {
    const download = run('apt-get', ['download', '-q', name], work)
    const [file] = globSync('*.deb', { cwd: work })
    if (file === undefined)
      return {
        root: null,
        reason: `python3-doc: apt-get download ${name} failed: ${download.err}`,
      }
    mkdirSync(join(work, 'files'))
    const unpack = run('dpkg-deb', ['-x', file, 'files'], work)
    if (unpack.status !== 0)
      return {
        root: null,
        reason: `python3-doc: unpacking ${file} failed: ${unpack.err}`,
      }
    // Whole or not at all, also when two tests ask at once.
    if (!existsSync(cache)) renameSync(join(work, 'files'), cache)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
  const root = newest(globSync(join(cache, 'usr/share/doc/python3.*/html/index.html')))
  return root === null ? { root, reason: `python3-doc: ${name} holds no HTML` } : { root, package: name }
}

/** The html directory of the highest version. */
function newest(indexes: readonly string[]): string | null {
  const minor = (path: string): number => Number(/python3\.(\d+)\//.exec(path)?.[1] ?? 0)
  const [best] = indexes.filter((path) => minor(path) > 0).sort((a, b) => minor(b) - minor(a))
  return best === undefined ? null : join(best, '..')
}

function run(
  command: string,
  args: readonly string[],
  cwd: string,
): { status: number | null; out: string; err: string } {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd,
    encoding: 'utf8',
    timeout: 300_000,
  })
  return {
    status,
    out: stdout ?? '',
    err: (error?.message ?? stderr ?? '').trim(),
  }
}
