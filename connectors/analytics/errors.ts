/**
 * By what to do about it. `unavailable`: no answer, or ClickHouse says that it cannot now: the same call later may
 * succeed, nothing is known to be lost · `row-refused`: the content of a row is refused; the others of the batch were
 * not written · `refused`: ClickHouse refuses the statement whatever its rows are (no such table, no right) · `query`:
 * the SQL is wrong · `read-only`: the statement is not one that only reads · `not-installed`: the embedded engine is not
 * here · `foreign`: the database holds rows of another log · `closed`.
 */
export type AnalyticsErrorCode =
  | 'unavailable'
  | 'row-refused'
  | 'refused'
  | 'query'
  | 'read-only'
  | 'not-installed'
  | 'foreign'
  | 'closed'

export class AnalyticsError extends Error {
  readonly code: AnalyticsErrorCode

  constructor(code: AnalyticsErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'AnalyticsError'
    this.code = code
  }
}
