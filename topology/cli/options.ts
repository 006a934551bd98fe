import { type Command, Option } from 'commander'
import { flagOf, resolveSettings, type Setting, type SettingName, type Settings, settings } from '../settings.ts'

/** Adds the flags of these settings, with their help and defaults, and --config. */
export function addSettings(command: Command, names: readonly SettingName[]): Command {
  for (const name of names) command.addOption(toOption(settings.find((s) => s.name === name)!))
  return command.option('--config <file>', 'settings file (JSON: option names in camelCase)')
}

/** Flags over environment over file, checked. */
export function readSettings(command: Command): Settings {
  const flags = { ...command.opts<{ [name: string]: string | boolean | undefined }>() }
  // What nobody gave: commander turns a --no-… flag on by itself.
  for (const name of Object.keys(flags)) if (command.getOptionValueSource(name) === 'default') delete flags[name]
  return resolveSettings(flags, process.env, typeof flags.config === 'string' ? flags.config : undefined)
}

function toOption(setting: Setting): Option {
  const flag = flagOf(setting.name)
  const shown = setting.default === null || setting.kind === 'flag' ? '' : ` (default: ${setting.default})`
  const help = `${setting.help}${shown}`
  if (setting.kind === 'flag') return new Option(flag, help)
  const placeholder = setting.kind === 'choice' ? setting.choices!.join('|') : (setting.placeholder ?? setting.name)
  return new Option(`${flag} <${placeholder}>`, help)
}
