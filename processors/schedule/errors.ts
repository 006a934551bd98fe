/** A record that is no candidate or no outcome, whatever the schema says: for the dead letters. */
export class ScheduleInputError extends Error {
  override readonly name = 'ScheduleInputError'
  readonly code = 'malformed'
}
