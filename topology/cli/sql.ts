import { Command } from 'commander'
import { printResult, runSql } from './analytics.ts'
import { addSettings, readSettings } from './options.ts'
import type { Output } from './output.ts'

export function sqlCommand(output: Output): Command {
  const command = new Command('sql')
    .description('Asks ClickHouse, also while the crawl runs. It only reads.')
    .argument('<statement>', 'one statement; leave FORMAT out')
    .option('--json', 'one JSON object a row')
    .addHelpText(
      'after',
      `
Tables: fetches (each outcome), page_states, parses, hosts (the latest of each; with FINAL), decisions; pages is a view of
them with one row a URL. Hashes are bytes: hex(url_hash). The statement runs on the server that CLICKHOUSE_URL names, or
on the ClickHouse in the data directory.

Examples:
  $ weir sql 'SELECT url, title FROM pages WHERE http_status = 200 LIMIT 10'
  $ weir sql 'DESCRIBE TABLE fetches'
`,
    )
  addSettings(command, ['data', 'crawl'])
  return command.action(async (sql: string, options: { json?: boolean }) => {
    printResult(output, await runSql(readSettings(command), sql), options.json === true)
  })
}
