import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'

const root = process.env.WEIR_TEST_DATA ?? resolve(import.meta.dirname, '../../../../shared/suites')

/** For node:test's `skip`: false where the public suite is there, else why the test is skipped. */
export function lacks(folder: string): false | string {
  return existsSync(resolve(root, folder)) ? false : `no public suite at ${resolve(root, folder)} (WEIR_TEST_DATA)`
}

export function suiteFile(path: string): Buffer {
  return readFileSync(resolve(root, path))
}

export interface RealPage {
  readonly name: string
  readonly html: Buffer
  readonly expectedHtml: Buffer
}

/** Real pages with their main text as people expect it. */
export function realPages(): RealPage[] {
  return readdirSync(resolve(root, 'readability'), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => ({
      name,
      html: suiteFile(`readability/${name}/source.html`),
      expectedHtml: suiteFile(`readability/${name}/expected.html`),
    }))
}
