/**
 * `topic-mismatch` a topic exists with other partitions or cleanup · `topic-unknown` no such topic or partition ·
 * `record-too-large` over the topic's maxRecordBytes · `journal-broken` a frame that was acknowledged cannot be read ·
 * `journal-newer` written by a newer version · `closed` the log, lane, unit or member has ended ·
 * `offset-out-of-range` a position that the log does not reach · `fenced` another holder has taken the lane's id ·
 * `write-failed` the disk refused, nothing was kept.
 */
export type LogErrorCode =
  | 'topic-mismatch'
  | 'topic-unknown'
  | 'record-too-large'
  | 'journal-broken'
  | 'journal-newer'
  | 'closed'
  | 'offset-out-of-range'
  | 'fenced'
  | 'write-failed'

export class LogError extends Error {
  readonly code: LogErrorCode
  constructor(code: LogErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'LogError'
    this.code = code
  }
}
