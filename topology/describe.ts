import { crawlApplications, notRun, sinkTopology } from './crawl.ts'

/** Each application's topology in Kafka Streams' text form. */
export function describeCrawl(crawl: string): { applicationId: string; description: string }[] {
  const applications = crawlApplications(crawl, {
    canonicalize: notRun,
    dedupe: notRun,
    schedule: notRun,
    fetch: notRun,
  })
  return [...applications, { applicationId: `${crawl}-sink`, topology: sinkTopology(crawl) }].map(
    ({ applicationId, topology }) => ({ applicationId, description: topology.describe() }),
  )
}
