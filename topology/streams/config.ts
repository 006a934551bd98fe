/** Sizes and times of the runtime; the names are Java's where Java has the thing. */
export interface StreamsConfig {
  /** Names this process in its groups and lanes; must be stable. */
  readonly instanceId: string
  /** `commit.interval.ms`: an upper bound. A commit comes sooner when the input is drained and output waits. */
  readonly commitIntervalMs: number
  /** `poll.ms`: how long to wait for input before looking at everything else. */
  readonly pollMs: number
  readonly maxPollBytes: number
  /** Staged writes and outputs of the open unit; when they are over it, it is committed. */
  readonly maxStagedBytes: number
  readonly restoreBatchBytes: number
  /** Of changelog topics: what one key and value of a store may have. */
  readonly changelogMaxRecordBytes: number
  /** Longest stretch of processing before timers and sockets get their turn. */
  readonly sliceMs: number
  /** `errors.dead.letter.queue.topic.name`. Absent: a record that cannot be processed stops the process. */
  readonly deadLetterTopic: string | undefined
}

export const defaultConfig: StreamsConfig = {
  instanceId: 'streams-0',
  commitIntervalMs: 100,
  pollMs: 100,
  maxPollBytes: 1 << 20,
  maxStagedBytes: 16 << 20,
  restoreBatchBytes: 1 << 20,
  changelogMaxRecordBytes: 8 << 20,
  sliceMs: 10,
  deadLetterTopic: undefined,
}
