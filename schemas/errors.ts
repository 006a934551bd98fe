/**
 * `schema-unknown`: written with a schema that this version was not released with · `not-avro`: no single-object
 * header · `malformed`: truncated, trailing or impossible bytes · `invalid-value`: the value does not fit its schema ·
 * `schema-missing`: there is no such file · `links-malformed`: a broken links blob.
 */
export type SchemaErrorCode =
  | 'schema-unknown'
  | 'not-avro'
  | 'malformed'
  | 'invalid-value'
  | 'schema-missing'
  | 'links-malformed'

export class SchemaError extends Error {
  readonly code: SchemaErrorCode

  constructor(code: SchemaErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'SchemaError'
    this.code = code
  }
}
