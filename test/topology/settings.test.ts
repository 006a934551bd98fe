import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { agentOf, defaultSettings, environmentOf, flagOf, resolveSettings } from '../../topology/settings.ts'

test('flags win over the environment, which wins over the file, which wins over the defaults', (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'weir-settings-'))
  t.after(() => rmSync(dir, { recursive: true }))
  const file = join(dir, 'weir.json')
  writeFileSync(file, JSON.stringify({ delayMs: 5000, maxDepth: 3, scope: 'any' }))
  const s = resolveSettings({ delayMs: '7000' }, { WEIR_DELAY_MS: '6000', WEIR_MAX_DEPTH: 'none' }, file)
  assert.equal(s.delayMs, 7000)
  assert.equal(s.maxDepth, null)
  assert.equal(s.scope, 'any')
  assert.equal(s.patienceS, defaultSettings.patienceS)
})

test('every fault is reported at once, with where it stands and what was perhaps meant', () => {
  assert.throws(
    () => resolveSettings({ delayMs: 'soon', scope: 'galaxy' }, { WEIR_MAX_DEPHT: '3' }, undefined),
    (error: Error & { exitCode?: number }) => {
      assert.equal(error.exitCode, 2)
      assert.match(error.message, /--delay-ms: must be a whole number .* not "soon"/)
      assert.match(error.message, /--scope: must be one of host, domain, any/)
      assert.match(error.message, /unknown variable WEIR_MAX_DEPHT \(did you mean WEIR_MAX_DEPTH\?\)/)
      return true
    },
  )
})

test('a settings file that is no JSON object, or is not there, is named', (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'weir-settings-'))
  t.after(() => rmSync(dir, { recursive: true }))
  const file = join(dir, 'weir.json')
  assert.throws(() => resolveSettings({}, {}, file), /reading the settings file .*weir\.json/)
  writeFileSync(file, '[1]')
  assert.throws(() => resolveSettings({}, {}, file), /must hold one JSON object/)
  writeFileSync(file, '{"dellayMs": 1}')
  assert.throws(() => resolveSettings({}, {}, file), /unknown setting "dellayMs" \(did you mean delayMs\?\)/)
})

test('names of flags and variables follow from the setting', () => {
  assert.equal(flagOf('maxBodyBytes'), '--max-body-bytes')
  assert.equal(environmentOf('maxBodyBytes'), 'WEIR_MAX_BODY_BYTES')
})

test('the contact joins the User-Agent once; the token is its leading letters', () => {
  assert.deepEqual(agentOf({ userAgent: 'weir/0.1', contact: 'ops@example.org' }), {
    userAgent: 'weir/0.1 (+mailto:ops@example.org)',
    token: 'weir',
    hasContact: true,
  })
  assert.equal(
    agentOf({ userAgent: 'my-bot/2 (+https://example.org/bot)', contact: 'x@y.z' }).userAgent,
    'my-bot/2 (+https://example.org/bot)',
  )
  assert.equal(agentOf({ userAgent: 'my-bot/2', contact: null }).hasContact, false)
  assert.throws(() => agentOf({ userAgent: '2bot', contact: null }), /must begin with letters/)
})
