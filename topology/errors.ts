/** Errors that end a command. `exitCode`: 1 failed, 2 usage, 3 data directory. */
export class CommandError extends Error {
  readonly code: string
  readonly exitCode: 1 | 2 | 3

  constructor(code: string, exitCode: 1 | 2 | 3, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'CommandError'
    this.code = code
    this.exitCode = exitCode
  }
}

/** A wrong option, setting or operand: nothing was started. */
export function usageError(message: string): CommandError {
  return new CommandError('usage', 2, message)
}

/** The data directory cannot be used as asked: nothing in it was changed. */
export function dataDirectoryError(code: string, message: string, options?: ErrorOptions): CommandError {
  return new CommandError(code, 3, message, options)
}
