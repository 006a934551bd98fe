#!/usr/bin/env node
import { Command, CommanderError } from 'commander'
import { CommandError } from '../errors.ts'
import { canonicalizeCommand } from './canonicalize.ts'
import { crawlCommand } from './crawl.ts'
import { deadLettersCommand } from './dead-letters.ts'
import { explainCommand } from './explain.ts'
import { getCommand } from './get.ts'
import { createOutput, type Output } from './output.ts'
import { parseCommand } from './parse.ts'
import { robotsCommand } from './robots.ts'
import { statusCommand } from './status.ts'
import { topologyCommand } from './topology.ts'

process.exitCode = await run(process.argv.slice(2), createOutput(process.stdout, process.stderr))

async function run(args: readonly string[], output: Output): Promise<number> {
  const program = createProgram(output)
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
  const program = new Command('weir')
    .description('A polite, replayable web crawler.')
    .exitOverride()
    .showSuggestionAfterError(true)
    .configureOutput({ writeErr: (text) => process.stderr.write(text) })
    .addHelpText(
      'after',
      `
Examples:
  $ weir crawl https://example.org/ --contact you@example.org --data example
  $ weir status --data example
  $ weir explain https://example.org/about --data example
  $ weir get https://example.org/ --text --data example

Exit codes: 0 done, 1 failed, 2 usage, 3 data directory, 130 interrupted.`,
    )
  for (const command of [
    crawlCommand(output),
    statusCommand(output),
    explainCommand(output),
    getCommand(output),
    parseCommand(output),
    canonicalizeCommand(output),
    robotsCommand(output),
    topologyCommand(output),
    deadLettersCommand(output),
  ]) {
    program.addCommand(inheritBehaviour(command))
  }
  return program
}

function inheritBehaviour(command: Command): Command {
  command.exitOverride().showSuggestionAfterError(true)
  for (const child of command.commands) inheritBehaviour(child)
  return command
}
