import type { Header, Headers } from '../../connectors/log/types.ts'

/**
 * Headers of a dead letter, named as in KIP-1034; the record's own follow. Key and value stay the raw bytes, so that
 * the record can be sent again as it was.
 */
export function deadLetterHeaders(
  error: unknown,
  source: {
    readonly topic: string
    readonly partition: number
    readonly offset: number
  },
  original: Headers,
): Headers {
  const cause = error instanceof Error && error.cause instanceof Error ? `\nCaused by: ${error.cause.stack ?? ''}` : ''
  const [name, message, stack] =
    error instanceof Error
      ? [exceptionName(error), error.message, `${error.stack ?? ''}${cause}`]
      : ['Error', String(error), '']
  return [
    header('exception', name),
    header('message', message.slice(0, maxMessageChars)),
    header('stacktrace', stack.slice(0, maxStackChars)),
    header('topic', source.topic),
    header('partition', String(source.partition)),
    header('offset', String(source.offset)),
    ...original,
  ]
}

const maxMessageChars = 2_000
const maxStackChars = 8_000

function header(name: string, value: string): Header {
  return [`__streams.errors.${name}`, Buffer.from(value)]
}

/** The class with the stable code, where there is one: `RecordError/serialization`. */
function exceptionName(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? `${error.name}/${error.code}` : error.name
}
