import { Command } from 'commander'
import { CommandError } from '../errors.ts'
import type { DeadLetter } from '../inspect.ts'
import { addSettings, readSettings } from './options.ts'
import { type Output, visible } from './output.ts'
import { ask } from './view.ts'

export function deadLettersCommand(output: Output): Command {
  const list = new Command('list')
    .description('One line a record that could not be processed.')
    .option('--json', 'one JSON object a line, as show gives it')
    .addHelpText('after', '\nExample:\n  $ weir dead-letters list --data weir-data\n')
  addSettings(list, ['data', 'crawl']).action(async (options: { json?: boolean }) => {
    const letters = await ask(readSettings(list), 'dead-letters', '')
    for (const letter of letters) output.data(options.json === true ? JSON.stringify(letter) : oneLine(letter))
    if (letters.length === 0) output.message('no dead letters')
  })

  const show = new Command('show')
    .description('One record, whole: where it came from, why it failed, its bytes.')
    .argument('<id>', 'as list gives it: partition:offset')
    .option('--json', 'one JSON object: {id, topic, partition, offset, error, message, key, value (base64)}')
    .addHelpText('after', '\nExample:\n  $ weir dead-letters show 2:0 --data weir-data\n')
  addSettings(show, ['data', 'crawl']).action(async (id: string, options: { json?: boolean }) => {
    const letter = (await ask(readSettings(show), 'dead-letters', '')).find((l) => l.id === id)
    if (letter === undefined)
      throw new CommandError(
        'no-letter',
        1,
        `showing dead letter ${id}: there is none with this id (weir dead-letters list)`,
      )
    if (options.json === true) output.data(JSON.stringify(letter))
    else {
      output.data(`${oneLine(letter)}\nkey:   ${visible(letter.key)}\nvalue: ${letter.value === null ? '(none)' : ''}`)
      if (letter.value !== null) output.data(hexDump(Buffer.from(letter.value, 'base64')))
    }
  })

  return new Command('dead-letters')
    .description('Records that could not be processed; they are kept, nothing waits for them.')
    .addHelpText('after', '\nExample:\n  $ weir dead-letters list --data weir-data\n')
    .addCommand(list)
    .addCommand(show)
}

function oneLine(l: DeadLetter): string {
  const where = `${l.topic} partition ${l.partition} offset ${l.offset}`
  return visible(`${l.id}  ${where}  ${l.error}: ${l.message.split('\n')[0]}`)
}

function hexDump(bytes: Buffer): string {
  const lines: string[] = []
  for (let at = 0; at < bytes.length; at += 16) {
    const part = bytes.subarray(at, at + 16)
    const hex = [...part].map((b) => b.toString(16).padStart(2, '0')).join(' ')
    const text = part.toString('latin1').replace(/[^\x20-\x7e]/g, '.')
    lines.push(`${at.toString(16).padStart(8, '0')}  ${hex.padEnd(47)}  ${text}`)
  }
  return lines.join('\n')
}
