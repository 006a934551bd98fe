import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { test } from 'node:test'
import { flagOf, settings } from '../../topology/settings.ts'

const readme = resolve(import.meta.dirname, '../../README.md')

test("the README's table of settings is the one that the settings give", () => {
  const text = readFileSync(readme, 'utf8')
  const shown = /<!-- settings: begin -->\n([\s\S]*?)<!-- settings: end -->/.exec(text)?.[1]
  assert.equal(shown, settingsTable())
})

function settingsTable(): string {
  const rows = settings.map((s) => {
    const value = s.kind === 'flag' ? '' : ` ${s.kind === 'choice' ? s.choices!.join('\\|') : (s.placeholder ?? '')}`
    const preset = s.default === null ? (s.none ? 'none' : '') : s.kind === 'flag' ? 'off' : `\`${s.default}\``
    return `| \`${flagOf(s.name)}${value}\` | ${preset} | ${s.help} |`
  })
  return `| flag | default | what it does |\n|---|---|---|\n${rows.join('\n')}\n`
}
