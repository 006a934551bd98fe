import type { StreamsEvent } from './streams/events.ts'

/** What of the streams' events a person should know, in a sentence. */
export function noticeEvent(event: StreamsEvent, notice: (text: string) => void): void {
  switch (event.kind) {
    case 'dead-letter':
      notice(
        `a record of ${event.topic} (partition ${event.partition}, offset ${event.offset}) could not be processed and is in the dead letters: ${messageOf(event.error)}`,
      )
      break
    case 'task-stopped':
      notice(`task ${event.taskId} of ${event.applicationId} has stopped: ${messageOf(event.error)}`)
      break
    case 'work-failed':
      notice(`a visit failed inside the crawler (${event.applicationId}): ${messageOf(event.error)}`)
      break
    case 'aborted':
      notice(`a commit was not written and is done again: ${event.error.message}`)
      break
    default:
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
