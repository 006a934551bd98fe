/**
 * Errors by consequence: what the runtime does about one, not where it came from. Match on `code`.
 *
 * | consequence   | class             | what happens                                                              |
 * | ------------- | ----------------- | ------------------------------------------------------------------------- |
 * | dead-letter   | RecordError       | the record goes to the dead letters, its effects are undone, work goes on |
 * | retry         | RetryError        | the record is tried again later; the task waits, nothing is charged       |
 * | stop task     | StopTaskError     | what came before is committed; the task stops, the others go on           |
 * | stop process  | StopProcessError  | all streams of the process stop, nothing of the open unit is committed    |
 *
 * An error of any other class, thrown by `process`, is the record's fault: it is dead-lettered.
 */
export type Consequence = 'dead-letter' | 'retry' | 'stop-task' | 'stop-process'

export class StreamsError extends Error {
  readonly code: string
  readonly consequence: Consequence

  constructor(code: string, consequence: Consequence, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = new.target.name
    this.code = code
    this.consequence = consequence
  }
}

export type RecordErrorCode =
  | 'deserialization'
  | 'processing'
  | 'serialization'
  | 'record-too-large'
  | 'partitioning'
  | 'store-key'

/** The record's own fault. */
export class RecordError extends StreamsError {
  constructor(code: RecordErrorCode, message: string, options?: ErrorOptions) {
    super(code, 'dead-letter', message, options)
  }
}

/** Thrown by a processor when what it needs is away for a while. */
export class RetryError extends StreamsError {
  readonly delayMs: number

  constructor(message: string, delayMs: number, options?: ErrorOptions) {
    super('retry', 'retry', message, options)
    this.delayMs = delayMs
  }
}

/** Thrown by a processor that cannot go on, while others can. */
export class StopTaskError extends StreamsError {
  constructor(message: string, options?: ErrorOptions & { code?: string }) {
    super(options?.code ?? 'stop-task', 'stop-task', message, options)
  }
}

/** Thrown by a processor when going on would break a promise, e.g. a clock that cannot be trusted. */
export class StopProcessError extends StreamsError {
  constructor(message: string, options?: ErrorOptions & { code?: string }) {
    super(options?.code ?? 'stop-process', 'stop-process', message, options)
  }
}

/** A topology or configuration that cannot run; thrown while building, before anything starts. */
export class TopologyError extends StreamsError {
  constructor(message: string) {
    super('topology', 'stop-process', message)
  }
}
