/** `node --import usage.ts …`: writes what the process has used, all its threads and its start included, at its end. */
import { writeFileSync } from 'node:fs'

const file = process.env.WEIR_BENCH_USAGE
if (file !== undefined) {
  process.on('exit', () => {
    const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage()
    writeFileSync(file, JSON.stringify({ cpuSec: (userCPUTime + systemCPUTime) / 1e6, maxRssMib: maxRSS / 1024 }))
  })
}
