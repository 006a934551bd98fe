#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { CommandError } from '../errors.ts'
import { createOutput, type Output } from './output.ts'

/** Loaded when asked for: `weir canonicalize` need not wait for a crawler to be read. */
const commands: { readonly [name: string]: () => Promise<(output: Output) => Command> } = {
  crawl: async () => (await import('./crawl.ts')).crawlCommand,
  status: async () => (await import('./status.ts')).statusCommand,
  explain: async () => (await import('./explain.ts')).explainCommand,
  get: async () => (await import('./get.ts')).getCommand,
  sql: async () => (await import('./sql.ts')).sqlCommand,
  query: async () => (await import('./query.ts')).queryCommand,
  parse: async () => (await import('./parse.ts')).parseCommand,
  replay: async () => (await import('./replay.ts')).replayCommand,
  canonicalize: async () => (await import('./canonicalize.ts')).canonicalizeCommand,
  robots: async () => (await import('./robots.ts')).robotsCommand,
  topology: async () => (await import('./topology.ts')).topologyCommand,
  'dead-letters': async () => (await import('./dead-letters.ts')).deadLettersCommand,
}

process.exitCode = await run(process.argv.slice(2), createOutput(process.stdout, process.stderr))

async function run(args: readonly string[], output: Output): Promise<number> {
  const program = createProgram(output)
  const [name = ''] = args
  for (const load of Object.hasOwn(commands, name) ? [commands[name]!] : Object.values(commands)) {
    const command = await load()
    program.addCommand(inheritBehaviour(command(output), program))
  }
  try {
    if (args.length === 0) {
      program.outputHelp()
      return 0
    }
    await program.parseAsync([...args], { from: 'user' })
    return typeof process.exitCode === 'number' ? process.exitCode : 0
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    if (error instanceof CommandError) {
      output.message(`weir: ${error.message}`)
      return error.exitCode
    }
    output.message(`weir: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
    return 1
  }
}

function createProgram(output: Output): Command {
  return new Command('weir')
    .description('A polite, replayable web crawler.')
    .exitOverride()
    .showSuggestionAfterError(true)
    .showHelpAfterError('(--help tells more)')
    .configureOutput({ outputError: (text) => output.message(`weir: ${text.replace(/^error: /, '').trimEnd()}`) })
    .version(version(), '--version', 'print the version')
    .addHelpText(
      'after',
      `
Examples:
  $ weir crawl https://example.org/ --contact you@example.org --data example
  $ weir status --data example
  $ weir explain https://example.org/about --data example
  $ weir get https://example.org/ --text --data example
  $ weir query url-states --data example

Exit codes: 0 done, 1 failed, 2 usage, 3 data directory, 130 interrupted.`,
    )
}

function inheritBehaviour(command: Command, parent: Command): Command {
  command.copyInheritedSettings(parent)
  for (const child of command.commands) inheritBehaviour(child, command)
  return command
}

function version(): string {
  const manifest = new URL('../../package.json', import.meta.url)
  return (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version
}
