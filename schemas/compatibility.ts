import type avsc from 'avsc'
import { compileSchema } from './avro-types.ts'
import { fingerprintOf } from './codec.ts'

/**
 * Why `working` may not follow `released`: each string names a place and a rule; empty = FULL compatible, each reads
 * what the other writes. The flow of topics is a cycle, so there is no order in which all readers could be new first.
 * Beyond what resolution checks (Avro 1.11, "Schema Resolution"): nothing may be taken away or made narrower, since a
 * reader would get a default where the writer had a value.
 */
export function compatibilityProblems(working: unknown, released: unknown): string[] {
  const problems = styleProblems(working)
  comparePart(lookupOf(working), lookupOf(released), working as Schema, released as Schema, '', problems)
  if (problems.length > 0) return problems
  const newType = compileSchema(working)
  const oldType = compileSchema(released)
  if (fingerprintOf(newType).equals(fingerprintOf(oldType))) return problems
  for (const [reader, writer, what] of [
    [newType, oldType, 'the working schema cannot read the released one'],
    [oldType, newType, 'the released schema cannot read the working one'],
  ] as const) {
    const error = resolutionError(reader, writer)
    if (error !== null) problems.push(`${what}: ${error}`)
  }
  return problems
}

/** What every schema here has to have, so that it can be changed later: defaults for fields and enums. */
export function styleProblems(schema: unknown): string[] {
  const problems: string[] = []
  walk(schema as Schema, '', (part, path) => {
    if (typeof part === 'string' || Array.isArray(part)) return
    if (part.type === 'enum' && part.default === undefined) problems.push(`${path}: an enum without a default symbol`)
    for (const field of part.type === 'record' ? (part.fields ?? []) : []) {
      if (field.default === undefined) problems.push(`${join(path, field.name)}: a field without a default`)
    }
  })
  return problems
}

type Schema = string | Schema[] | Definition
interface Definition {
  readonly type: Schema
  readonly name?: string
  readonly default?: unknown
  readonly fields?: readonly { readonly name: string; readonly type: Schema; readonly default?: unknown }[]
  readonly symbols?: readonly string[]
  readonly size?: number
  readonly items?: Schema
  readonly values?: Schema
  readonly logicalType?: string
}
type Lookup = ReadonlyMap<string, Definition>

function comparePart(news: Lookup, olds: Lookup, a: Schema, b: Schema, path: string, problems: string[]): void {
  const now = deref(a, news)
  const before = deref(b, olds)
  if (Array.isArray(now) || Array.isArray(before)) {
    const [x, y] = [Array.isArray(now) ? now : [now], Array.isArray(before) ? before : [before]]
    if (x.length !== y.length) {
      problems.push(`${path}: a value became ${x.length > y.length ? 'nullable' : 'not nullable'}`)
      return
    }
    for (const [i, branch] of x.entries()) comparePart(news, olds, branch, y[i]!, path, problems)
    return
  }
  const [kind, kindBefore] = [kindOf(now), kindOf(before)]
  if (kind !== kindBefore) {
    problems.push(`${path}: the type changed from ${kindBefore} to ${kind}`)
    return
  }
  if (typeof now === 'string' || typeof before === 'string') return
  if (now.name !== before.name) problems.push(`${path}: the name changed from ${before.name} to ${now.name}`)
  if (now.size !== before.size) problems.push(`${path}: the size changed from ${before.size} to ${now.size}`)
  if (now.logicalType !== before.logicalType) problems.push(`${path}: the logical type changed`)
  for (const [i, symbol] of (before.symbols ?? []).entries()) {
    if (!now.symbols?.includes(symbol)) problems.push(`${path}: the symbol ${symbol} was removed`)
    else if (now.symbols[i] !== symbol) problems.push(`${path}: the symbol ${symbol} moved: new ones go to the end`)
  }
  for (const field of before.fields ?? []) {
    const same = now.fields?.find((f) => f.name === field.name)
    if (same === undefined) problems.push(`${join(path, field.name)}: the field was removed`)
    else comparePart(news, olds, same.type, field.type, join(path, field.name), problems)
  }
  if (now.items !== undefined && before.items !== undefined) {
    comparePart(news, olds, now.items, before.items, `${path}[]`, problems)
  }
  if (now.values !== undefined && before.values !== undefined) {
    comparePart(news, olds, now.values, before.values, `${path}{}`, problems)
  }
}

function resolutionError(reader: avsc.Type, writer: avsc.Type): string | null {
  try {
    reader.createResolver(writer)
    return null
  } catch (error) {
    return (error as Error).message
  }
}

function kindOf(schema: string | Definition): string {
  return typeof schema === 'string' ? schema : String(schema.type)
}

function deref(schema: Schema, lookup: Lookup): Schema {
  return (typeof schema === 'string' ? lookup.get(schema) : undefined) ?? schema
}

function lookupOf(schema: unknown): Lookup {
  const lookup = new Map<string, Definition>()
  walk(schema as Schema, '', (part) => {
    if (typeof part !== 'string' && !Array.isArray(part) && part.name !== undefined) lookup.set(part.name, part)
  })
  return lookup
}

function walk(schema: Schema, path: string, visit: (part: Schema, path: string) => void): void {
  visit(schema, path)
  if (typeof schema === 'string') return
  if (Array.isArray(schema)) {
    for (const branch of schema) walk(branch, path, visit)
    return
  }
  for (const field of schema.fields ?? []) walk(field.type, join(path, field.name), visit)
  if (schema.items !== undefined) walk(schema.items, `${path}[]`, visit)
  if (schema.values !== undefined) walk(schema.values, `${path}{}`, visit)
}

function join(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}
