/** The Analytics port: tables that people ask in SQL. */

export type Cell = string | number | boolean | null | readonly string[] | { readonly [key: string]: readonly string[] }
/** A row by column names. All rows of one insert have the same ones. Times are ISO 8601, 64-bit integers text. */
export type Row = { readonly [column: string]: Cell }

export interface Column {
  readonly name: string
  readonly type: string
}
export interface QueryResult {
  readonly columns: readonly Column[]
  /** In the order of `columns`; 64-bit integers are text. */
  readonly rows: readonly (readonly unknown[])[]
}

/** Where a running process lets others ask. */
export interface AnalyticsAccess {
  readonly url: string
  readonly username: string
  readonly password: string
  readonly database: string
}

/** Every method rejects with AnalyticsError. */
export interface Analytics {
  /** Makes the database, tables and views that are missing. May be repeated. */
  ensureSchema(): Promise<void>
  /**
   * All rows or none become visible. Repeating an insert with the same token and rows changes nothing, within the last
   * 1,000 inserts of the table. Rejects with `row-refused` when it is the content that is refused.
   */
  insert(table: string, rows: readonly Row[], token: string): Promise<void>
  /** Reads. Rejects with `read-only` before anything is sent when `sql` could write. */
  query(sql: string): Promise<QueryResult>
  access(): Promise<AnalyticsAccess>
  close(): Promise<void>
}
