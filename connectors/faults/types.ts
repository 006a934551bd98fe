/**
 * Named moments at which a test may kill the process. Outside tests `hit` does nothing.
 * `visit-committed`: the fetch task has committed that it took a visit, no request made yet ·
 * `mid-body`: part of a response body has arrived · `warc-written`: the record is in the archive, `fetched` is not in
 * the log · `frame-written`: a journal frame is written, not synced · `committed`: the unit is committed, the local
 * store has not applied it · `batch-planned`: the end of a batch for ClickHouse is committed, nothing of it delivered ·
 * `batch-delivered`: all of it is delivered, the position is not committed.
 */
export type FaultPoint =
  | 'visit-committed'
  | 'mid-body'
  | 'warc-written'
  | 'frame-written'
  | 'committed'
  | 'batch-planned'
  | 'batch-delivered'
export interface Faults {
  hit(point: FaultPoint): void
}
export const noFaults: Faults = { hit() {} }
