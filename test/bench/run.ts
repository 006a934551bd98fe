/** `npm run bench -- NAME [--json]`: runs test/bench/NAME.ts alone and prints its rows. Names without an operand. */
import { readdirSync } from 'node:fs'
import { cpus } from 'node:os'

/** One measured figure. `bar` and `goal` are texts such as "<= 1.5"; `ok` says whether the bar holds. */
export interface BenchRow {
  what: string
  value: number
  unit: string
  bar?: string
  goal?: string
  ok?: boolean
}

interface BenchModule {
  /** How it is measured, in a sentence. */
  method: string
  bench(seed: number): Promise<BenchRow[]>
}

const names = readdirSync(import.meta.dirname)
  .filter((file) => file.endsWith('.ts') && file !== 'run.ts' && file !== 'usage.ts' && file !== 'webs.ts')
  .map((file) => file.slice(0, -3))

if (import.meta.main) await main(process.argv.slice(2))

async function main(args: string[]): Promise<void> {
  const json = args.includes('--json')
  const name = args.find((arg) => !arg.startsWith('--'))
  if (name === undefined || !names.includes(name)) {
    process.stderr.write(`usage: npm run bench -- NAME [--json]\nnames: ${names.join(', ')}\n`)
    process.exitCode = name === undefined ? 0 : 2
    return
  }
  const module = (await import(`./${name}.ts`)) as BenchModule
  const seed = Number(args.find((arg) => arg.startsWith('--seed='))?.slice(7) ?? 1)
  const rows = await module.bench(seed)
  const machine = `${cpus().length} x ${cpus()[0]?.model ?? 'unknown CPU'}, Node ${process.versions.node}`
  const result = { name, machine, method: module.method, seed, rows }
  if (json) {
    process.stdout.write(`${JSON.stringify(result)}\n`)
    return
  }
  process.stdout.write(`${name}: ${module.method}\non ${machine}, seed ${seed}\n`)
  for (const row of rows) {
    const bar = row.bar === undefined ? '' : `  bar ${row.bar} ${row.ok ? 'held' : 'MISSED'}`
    process.stdout.write(`  ${row.what.padEnd(52)} ${row.value.toPrecision(4).padStart(10)} ${row.unit}${bar}\n`)
  }
}
