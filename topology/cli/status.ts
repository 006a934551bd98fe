import { Command } from 'commander'
import { addSettings, readSettings } from './options.ts'
import { count, inTime, type Output } from './output.ts'
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
    output.data(
      `crawl ${s.crawl}: ${s.running ? `running, ${s.pagesPerSec.toFixed(1)} pages/s, ${count(s.inFlight, 'visit')} in flight` : 'not running'}`,
    )
    output.data(`${count(s.pages, 'page')} answered, ${count(s.requests, 'request')}, ${count(s.hosts, 'host')}`)
    for (const [state, n] of Object.entries(s.states).sort((a, b) => b[1] - a[1])) {
      output.data(`  ${state.padEnd(28)} ${n.toLocaleString('en-US').padStart(9)}`)
    }
    for (const p of s.parked) {
      output.data(
        `  ${count(p.count, 'URL')} parked: ${p.reason}${p.next === null ? '' : `, looked at again ${inTime(p.next - Date.now())}`}`,
      )
    }
  })
}
