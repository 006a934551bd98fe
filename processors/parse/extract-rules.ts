import { z } from 'zod'
import { hash128 } from '../../schemas/hash.ts'
import { selectorFault } from './dom.ts'

/** What one field takes from a page. */
export interface ExtractRule {
  readonly css: string
  /** Text with white space collapsed, inner HTML, or an attribute's value. */
  readonly read: 'text' | 'html' | `attr:${string}`
  /** Every match, not only the first that has a value. */
  readonly many: boolean
  /** Hosts whose pages it is for; null = all. */
  readonly hosts: readonly string[] | null
}
export interface ExtractRules {
  readonly [field: string]: ExtractRule
}

/** Version of what our own parser makes of the same bytes: raised with every change of its results. */
export const parserVersion = 1

const maxFields = 100

/**
 * Reads the settings file's `extract` object. All faults come together, each as `extract.<path>: <what is wrong>`; a selector
 * that does not compile is one.
 */
export function readExtractRules(value: unknown): { rules: ExtractRules } | { faults: string[] } {
  if (typeof value === 'object' && value !== null && Object.hasOwn(value, '__proto__')) {
    return { faults: ['extract.__proto__: no field has this name'] }
  }
  const parsed = rulesSchema.safeParse(value)
  if (parsed.success) return { rules: parsed.data }
  return { faults: faultsOf(parsed.error.issues) }
}

/** A key's own issues stand inside the record's. */
function faultsOf(issues: readonly z.core.$ZodIssue[]): string[] {
  return issues.flatMap((issue) => {
    const messages = issue.code === 'invalid_key' ? issue.issues.map((inner) => inner.message) : [issue.message]
    return messages.map((message) => `${['extract', ...issue.path].join('.')}: ${message}`)
  })
}

/** Equal for rules that give equal fields under the same parser. */
export function rulesHash(rules: ExtractRules): string {
  const fields = Object.keys(rules).sort()
  const parts = fields.map((field) => {
    const { css, read, many, hosts } = rules[field]!
    return [field, css, read, many, hosts === null ? null : [...hosts].sort()]
  })
  return hash128(JSON.stringify([parserVersion, parts])).toString('hex')
}

const host = z.string().transform((text, context) => {
  const url = URL.parse(`http://${text}/`)
  const isHost = url !== null && url.href === `http://${url.hostname}/` && !/[:/?#]$|:\d+$/.test(text)
  if (isHost) return url.hostname
  context.addIssue({ code: 'custom', message: `"${text.slice(0, 100)}" is no host name` })
  return z.NEVER
})

const css = z.string().superRefine((text, context) => {
  const fault = text.trim() === '' ? 'it is empty' : selectorFault(text)
  if (fault !== null) context.addIssue({ code: 'custom', message: `"${text.slice(0, 100)}" is no selector: ${fault}` })
})

const read = z
  .custom<ExtractRule['read']>(
    (text) => typeof text === 'string' && /^(?:text|html|attr:[^\s"'<>/=]{1,100})$/.test(text),
    {
      message: 'must be "text", "html" or "attr:NAME"',
    },
  )
  .default('text')

const rule: z.ZodType<ExtractRule> = z.strictObject({
  css,
  read,
  many: z.boolean().default(false),
  hosts: z
    .array(host)
    .min(1)
    .max(1000)
    .nullish()
    .transform((hosts) => hosts ?? null),
})

const field = z.string().regex(/^[A-Za-z]\w{0,63}$/, {
  message: 'a field is named by a letter and at most 63 letters, digits or "_"',
})

const rulesSchema: z.ZodType<ExtractRules> = z
  .record(field, rule)
  .refine((rules) => Object.keys(rules).length <= maxFields, { message: `at most ${maxFields} fields` })
