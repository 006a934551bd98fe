import { Command } from 'commander'
import { createSystemClock } from '../../connectors/clock/system.ts'
import { addSettings, readSettings } from './options.ts'
import { count, type Output, parkedLines, stateLines } from './output.ts'
import { ask } from './view.ts'

export function statusCommand(output: Output): Command {
  const command = new Command('status')
    .description('Where a crawl stands, also while it runs.')
    .option('--json', 'one JSON line: {crawl, running, states, inFlight, pagesPerSec, hosts, lag}')
    .addHelpText('after', '\nExample:\n  $ weir status --data weir-data\n')
  addSettings(command, ['data', 'crawl'])
  return command.action(async (options: { json?: boolean }) => {
    const s = await ask(readSettings(command), 'status', '')
    if (options.json === true) {
      const { crawl, running, states, inFlight, pagesPerSec, hosts, lag } = s
      output.data(JSON.stringify({ crawl, running, states, inFlight, pagesPerSec, hosts, lag }))
      return
    }
    const activity = `running, ${s.pagesPerSec.toFixed(1)} pages/s, ${count(s.inFlight, 'visit')} in flight`
    output.data(`crawl ${s.crawl}: ${s.running ? activity : 'not running'}`)
    output.data(`${count(s.pages, 'page')} answered, ${count(s.requests, 'request')}, ${count(s.hosts, 'host')}`)
    for (const line of stateLines(s.states)) output.data(line)
    for (const line of parkedLines(s.parked, createSystemClock().nowMs())) output.data(line)
  })
}
