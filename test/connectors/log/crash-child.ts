/** Commits `0`, `1`, … to a/0 of the journal in argv[2], says so, and dies between a write and its sync. */
import { writeSync } from 'node:fs'
import { createSystemClock } from '../../../connectors/clock/system.ts'
import { openEmbeddedLog } from '../../../connectors/log/embedded/open.ts'
import { append } from '../../suites/log/harness.ts'

const [dir, framesText] = process.argv.slice(2)
let framesLeft = Number(framesText)
const faults = {
  hit() {
    if (framesLeft-- === 0) process.kill(process.pid, 'SIGKILL')
  },
}
const log = await openEmbeddedLog({ dir: dir!, clock: createSystemClock(), faults })
await log.ensure([{ name: 'a', partitions: 1, cleanup: 'compact', maxRecordBytes: 1000 }])
const to = log.partition('a', 0)
const lane = await log.lane('l')
for (let value = lane.ends(to).stable; ; value++) {
  const unit = lane.begin('atomic')
  append(unit, to, String(value))
  const outcome = await unit.commit([])
  if (outcome.kind !== 'committed') process.exit(1)
  writeSync(1, `${value}\n`)
}
