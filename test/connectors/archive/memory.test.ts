import { createMemoryArchive } from '../../../connectors/archive/memory.ts'
import { archiveSuite } from '../../suites/archive.ts'

archiveSuite({
  name: 'memory',
  open: () => ({
    archive: createMemoryArchive({ crawl: 'test' }),
    dispose() {},
  }),
})
