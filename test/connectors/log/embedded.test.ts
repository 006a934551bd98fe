import { testLog } from '../../suites/log.ts'
import { embeddedHarness } from './embedded-harness.ts'

testLog('embedded', embeddedHarness, true)
// Every few commits a new file, nothing served from memory for long.
testLog('embedded in small files', () => embeddedHarness({ maxFileBytes: 2000, cacheBytes: 4096 }), true)
