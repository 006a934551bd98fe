import { Command } from 'commander'
import { readSqlFiles } from '../../connectors/analytics/clickhouse.ts'
import { queriesDir } from '../analytics.ts'
import { usageError } from '../errors.ts'
import { suggestion } from '../settings.ts'
import { printResult, runSql } from './analytics.ts'
import { addSettings, readSettings } from './options.ts'
import type { Output } from './output.ts'

export function queryCommand(output: Output): Command {
  const command = new Command('query')
    .description("An analyst's questions, ready made; without a name, which there are.")
    .argument('[name]', 'a file of deploy/clickhouse/queries/, without .sql')
    .option('--json', 'one JSON object a row (without a name: {name, answers})')
    .option('--sql', 'print the query instead of running it')
    .addHelpText('after', '\nExamples:\n  $ weir query\n  $ weir query url-states --data weir-data\n')
  addSettings(command, ['data', 'crawl'])
  return command.action(async (name: string | undefined, options: { json?: boolean; sql?: boolean }) => {
    const queries = readSqlFiles(queriesDir)
    if (name === undefined) {
      const width = Math.max(...queries.map((q) => q.name.length))
      for (const q of queries) {
        const answers = firstLine(q.sql)
        output.data(
          options.json === true ? JSON.stringify({ name: q.name, answers }) : `${q.name.padEnd(width)}  ${answers}`,
        )
      }
      return
    }
    const query = queries.find((q) => q.name === name)
    if (query === undefined) {
      const names = queries.map((q) => q.name)
      throw usageError(`looking up the query ${name}: there is none${suggestion(name, names)}; weir query lists them`)
    }
    if (options.sql === true) output.data(query.sql)
    else printResult(output, await runSql(readSettings(command), query.sql), options.json === true)
  })
}

function firstLine(sql: string): string {
  return sql.split('\n', 1)[0]!.replace(/^--\s*/, '')
}
