import { Command } from 'commander'
import { describeCrawl } from '../describe.ts'
import type { Output } from './output.ts'

export function topologyCommand(output: Output): Command {
  return new Command('topology').description('What runs: the applications, their nodes and topics.').addCommand(
    new Command('describe')
      .description("Prints each application's topology in Kafka Streams' text form.")
      .option('--crawl <name>', 'name of the crawl: the prefix of topics and application ids', 'weir')
      .option('--json', 'one JSON object an application: {applicationId, description}')
      .addHelpText('after', '\nExample:\n  $ weir topology describe > before.txt\n')
      .action((options: { crawl: string; json?: boolean }) => {
        for (const { applicationId, description } of describeCrawl(options.crawl)) {
          output.data(
            options.json === true
              ? JSON.stringify({ applicationId, description })
              : `Application: ${applicationId}\n${description}`,
          )
        }
      }),
  )
}
