import { crawlApplications } from './crawl.ts'
import type { ProcessorSupplier } from './streams/types.ts'

/** Each application's topology in Kafka Streams' text form. */
export function describeCrawl(crawl: string): { applicationId: string; description: string }[] {
  const applications = crawlApplications(crawl, {
    canonicalize: notRun,
    dedupe: notRun,
    schedule: notRun,
    fetch: notRun,
  })
  return applications.map(({ applicationId, topology }) => ({ applicationId, description: topology.describe() }))
}

/** Stands for a processor where a topology is only looked at. */
export const notRun: ProcessorSupplier<string, never, string, never> = () => {
  throw new Error('a described topology is not run')
}
