/**
 * Runs one ring of tests: `node test/run.ts` the units and topology tests, `node test/run.ts integration` the third
 * ring. Further operands replace the file list.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, globSync } from 'node:fs'
import { resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')
const [ring, ...rest] = process.argv.slice(2)
const integration = ring === 'integration'
const operands = integration ? rest : process.argv.slice(2)
const all = globSync('test/**/*.test.ts', { cwd: root }).sort()
const files =
  operands.length > 0 ? operands : all.filter((file) => file.startsWith('test/integration/') === integration)

if (files.length === 0) {
  process.stderr.write(`running the tests: no test file${integration ? ' in test/integration/' : ''}\n`)
  process.exit(1)
}
const data = process.env.WEIR_TEST_DATA ?? resolve(root, '../shared/suites')
if (!existsSync(data)) {
  process.stderr.write(`no public test data at ${data} (WEIR_TEST_DATA): the tests that need it are skipped\n`)
}
const { status, signal } = spawnSync(
  process.execPath,
  [
    '--test',
    // Integration tests measure gaps between requests: one file at a time, so that they do not disturb each other.
    `--test-concurrency=${integration ? 1 : 2}`,
    '--test-reporter=spec',
    ...files,
  ],
  { cwd: root, stdio: 'inherit', env: { ...process.env, WEIR_TEST_DATA: data } },
)
process.exit(signal === null ? (status ?? 1) : 1)
