import { Command } from 'commander'
import type { Explanation } from '../inspect.ts'
import { addSettings, readSettings } from './options.ts'
import type { Output } from './output.ts'
import { ask } from './view.ts'

export function explainCommand(output: Output): Command {
  const command = new Command('explain')
    .description('What happened to a URL or a host, why, and what comes next.')
    .argument('<url|host>', 'with a scheme it is a URL, else a host')
    .option('--json', 'one JSON object: {url, key, state, reason, since, next, evidence, history}')
    .addHelpText('after', '\nExamples:\n  $ weir explain https://example.org/private/\n  $ weir explain example.org\n')
  addSettings(command, ['data', 'crawl'])
  return command.action(async (subject: string, options: { json?: boolean }) => {
    const settings = readSettings(command)
    if (!/^[a-z][a-z0-9+.-]*:/i.test(subject) || /^[^/]+:\d+$/.test(subject)) {
      const host = await ask(settings, 'host', subject.replace(/:\d+$/, ''))
      output.data(JSON.stringify(host, null, options.json === true ? 0 : 2))
      return
    }
    const explanation = await ask(settings, 'explain', subject)
    if (options.json === true) output.data(JSON.stringify(explanation))
    else for (const line of sentences(explanation)) output.data(line)
  })
}

function sentences(e: Explanation): string[] {
  const reason = e.reason === 'none' ? '' : ` (${e.reason})`
  const lines = [e.key, `  is ${e.state}${reason}${e.since === null ? '' : ` since ${e.since}`}`]
  if (e.evidence !== null) lines.push(`  because: ${e.evidence}`)
  if (e.next !== null) lines.push(`  next: ${e.next}`)
  for (const h of e.history) lines.push(`  ${h.at}  ${h.what}${h.fetchId === null ? '' : `  [${h.fetchId}]`}`)
  return lines
}
