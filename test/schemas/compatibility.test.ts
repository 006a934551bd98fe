import assert from 'node:assert/strict'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { compileSchema } from '../../schemas/avro-types.ts'
import { readSchemaFile, releasedFiles } from '../../schemas/codec.ts'
import { compatibilityProblems, styleProblems } from '../../schemas/compatibility.ts'

const folder = join(import.meta.dirname, '../../schemas')
const namesIn = (sub: string): string[] =>
  existsSync(join(folder, sub))
    ? readdirSync(join(folder, sub))
        .filter((file) => file.endsWith('.avsc'))
        .map((file) => join(sub, file.slice(0, -'.avsc'.length)))
    : []

for (const name of [...namesIn(''), ...namesIn('stores')]) {
  test(`${name}: FULL_TRANSITIVE compatible with every released version, the last of which it is`, () => {
    const working = readSchemaFile(`${name}.avsc`)
    assert.deepEqual(styleProblems(working), [])
    const files = releasedFiles(name)
    for (const file of files) {
      const problems = compatibilityProblems(working, readSchemaFile(file))
      assert.deepEqual(problems, [], `schemas/${name}.avsc against schemas/${file}`)
    }
    assert.ok(files.length > 0 || name.startsWith('stores/'), `schemas/released/${name}/1.avsc is missing`)
    // What is written must be readable by the next version: its schema is kept before it is used.
    if (files.length > 0) {
      assert.deepEqual(
        working,
        readSchemaFile(files.at(-1)!),
        `schemas/${name}.avsc is not ${files.at(-1)}: add a version`,
      )
    }
  })
}

const base = {
  type: 'record',
  name: 'R',
  namespace: 'weir',
  fields: [
    { name: 'a', type: 'int', default: 0 },
    { name: 'e', type: { type: 'enum', name: 'E', symbols: ['x', 'y_z'], default: 'x' }, default: 'x' },
    { name: 'n', type: ['null', 'string'], default: null },
    { name: 'f', type: { type: 'fixed', name: 'F', size: 2 }, default: '\u0000\u0000' },
    { name: 'l', type: { type: 'array', items: ['null', 'E'] }, default: [] },
    { name: 't', type: { type: 'long', logicalType: 'timestamp-millis' }, default: 0 },
  ],
}
type Fields = (typeof base.fields)[number][]
const change = (edit: (fields: Fields) => unknown): unknown => {
  const copy = structuredClone(base)
  edit(copy.fields)
  return copy
}
const enumOf = (symbols: string[], more: object = { default: 'x' }): never =>
  ({ type: 'enum', name: 'E', symbols, ...more }) as never

test('what may be changed', () => {
  assert.deepEqual(compatibilityProblems(base, base), [])
  const added = change((f) => f.push({ name: 'z', type: 'string', default: '' } as never))
  assert.deepEqual(compatibilityProblems(added, base), [])
  const symbol = change((f) => (f[1]!.type = enumOf(['x', 'y_z', 'w'])))
  assert.deepEqual(compatibilityProblems(symbol, base), [])
  assert.deepEqual(compatibilityProblems({ ...base, doc: 'other words' }, base), [])
})

test('what may not be changed: each rule names the place', () => {
  const cases: [string, unknown, RegExp][] = [
    ['no default', change((f) => f.push({ name: 'z', type: 'int' } as never)), /^z: a field without a default/],
    ['enum default', change((f) => (f[1]!.type = enumOf(['x', 'y_z'], {}))), /^e: an enum without a default/],
    ['removed field', change((f) => f.shift()), /^a: the field was removed/],
    ['removed symbol', change((f) => (f[1]!.type = enumOf(['x']))), /^e: the symbol y_z was removed/],
    ['moved symbol', change((f) => (f[1]!.type = enumOf(['y_z', 'x']))), /^e: the symbol x moved/],
    ['wider', change((f) => (f[0]!.type = 'long')), /^a: the type changed from int to long/],
    ['narrower', change((f) => (f[5]!.type = 'int')), /^t: the type changed from long to int/],
    ['other type', change((f) => Object.assign(f[0]!, { type: 'string', default: '' })), /^a: the type changed/],
    ['nullable', change((f) => Object.assign(f[0]!, { type: ['null', 'int'], default: null })), /^a: .*nullable/],
    ['not nullable', change((f) => Object.assign(f[2]!, { type: 'string', default: '' })), /^n: .*not nullable/],
    [
      'size',
      change((f) => Object.assign(f[3]!, { type: { type: 'fixed', name: 'F', size: 1 }, default: '\u0000' })),
      /^f: the size/,
    ],
    ['items', change((f) => (f[4]!.type = { type: 'array', items: 'E' } as never)), /^l\[\]: .*not nullable/],
    ['unit', change((f) => (f[5]!.type = { type: 'long' } as never)), /^t: the logical type changed/],
    ['name', { ...base, name: 'Q' }, /^: the name changed/],
  ]
  for (const [what, schema, rule] of cases) {
    const problems = compatibilityProblems(schema, base)
    assert.ok(
      problems.some((p) => rule.test(p)),
      `${what}: ${JSON.stringify(problems)}`,
    )
  }
})

test('old and new read each other: an added field is its default, an unknown symbol its enum default', () => {
  const next = change((f) => {
    f[1]!.type = enumOf(['x', 'y_z', 'new_one'])
    f.push({ name: 'z', type: 'string', default: 'none' } as never)
  })
  const [oldType, newType] = [compileSchema(base), compileSchema(next)]
  const value = { a: 1, e: 'y-z', n: 's', f: Buffer.from([1, 2]), l: [null, 'y-z'], t: 5 }
  const read = newType.fromBuffer(oldType.toBuffer(value), newType.createResolver(oldType))
  assert.deepEqual(read, { ...value, z: 'none' })
  const newValue = { ...value, e: 'new-one', l: ['new-one', 'x'], z: 'z' }
  const readByOld = oldType.fromBuffer(newType.toBuffer(newValue), oldType.createResolver(newType))
  assert.deepEqual(readByOld, { ...value, e: 'x', l: ['x', 'x'] })
})
