import { AnalyticsError } from './errors.ts'

const reading = new Set(['SELECT', 'WITH', 'SHOW', 'DESC', 'DESCRIBE', 'EXPLAIN', 'EXISTS'])

/**
 * Throws AnalyticsError `read-only` unless `sql` is one statement that reads. ClickHouse's own `readonly` lets through
 * what writes files (INSERT INTO FUNCTION file, INTO OUTFILE), so this looks at the words outside of literals, quoted
 * names and comments. Linear in the length.
 */
export function assertReadOnly(sql: string): void {
  const words = wordsOf(sql)
  const first = words.find((word) => word !== '(')
  if (first === undefined || !reading.has(first)) {
    throw new AnalyticsError(
      'read-only',
      `running SQL: only what reads is run (SELECT, WITH, SHOW, DESCRIBE, EXPLAIN, EXISTS), not ${first ?? 'nothing'}`,
    )
  }
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!
    const writes = (word === 'INSERT' && words[i + 1] === 'INTO') || (word === 'INTO' && words[i + 1] === 'OUTFILE')
    if (writes) throw new AnalyticsError('read-only', `running SQL: it is read-only, ${word} ${words[i + 1]} writes`)
    if (word === ';' && i + 1 < words.length) {
      throw new AnalyticsError('read-only', 'running SQL: one statement at a time')
    }
  }
}

/** Words in upper case, `(` and `;`; not what is in literals, quoted names and comments. */
function wordsOf(sql: string): string[] {
  const words: string[] = []
  for (const [text] of sql.matchAll(tokens)) {
    // $tag$ … $tag$ is a literal too, whose end only its tag tells.
    if (text.startsWith('$')) throw new AnalyticsError('read-only', `running SQL: write '…' instead of ${text}…${text}`)
    if (/^[A-Za-z_(;]/.test(text)) words.push(text.toUpperCase())
  }
  while (words.at(-1) === ';') words.pop()
  return words
}

/** No alternative that has begun can fail, so nothing is read twice. */
const tokens = new RegExp(
  [
    /--[^\n]*/,
    /#[! ][^\n]*/,
    /\/\*[\s\S]*?(?:\*\/|$)/,
    /'(?:[^'\\]|\\[\s\S]?)*(?:'|$)/,
    /"(?:[^"\\]|\\[\s\S]?)*(?:"|$)/,
    /`(?:[^`\\]|\\[\s\S]?)*(?:`|$)/,
    /\$\w*\$/,
    /[A-Za-z_]\w*/,
    /[(;]/,
  ]
    .map((r) => r.source)
    .join('|'),
  'g',
)
