import { existsSync } from 'node:fs'
import { join } from 'node:path'

const root = process.env.WEIR_TEST_DATA ?? join(import.meta.dirname, '../../../shared/suites')

/** A folder of the public test data, and the reason to skip where it is not there (false = there). */
export function suite(name: string): { folder: string; skip: string | false } {
  const folder = join(root, name)
  return { folder, skip: existsSync(folder) ? false : `no ${folder}: set WEIR_TEST_DATA` }
}
