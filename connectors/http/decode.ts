import type { Transform } from 'node:stream'
import zlib from 'node:zlib'

export type ContentCoding = 'gzip' | 'deflate' | 'br' | 'zstd'

/** More than two codings on one body is nobody's honest server. */
const maxCodings = 2
/** Up to here a body is decoded in one call when it is complete: a fifth of what a stream costs. */
const wholeBytes = 256 * 1024
const chunkBytes = 64 * 1024
/** RFC 8878 §3.1.1.1.2 recommends that decoders support 8 MB windows and refuse larger ones. */
const zstdWindowLog = 23

/**
 * The codings of a Content-Encoding field in the order in which they were applied (RFC 9110 §8.4), `identity` left out;
 * null if one is unknown or there are too many.
 */
export function contentCodings(fields: readonly string[]): ContentCoding[] | null {
  const codings: ContentCoding[] = []
  for (const token of fields.join(',').toLowerCase().split(',')) {
    const coding = token.trim()
    if (coding === '' || coding === 'identity') continue
    if (codings.length === maxCodings) return null
    if (coding === 'gzip' || coding === 'x-gzip') codings.push('gzip')
    else if (coding === 'deflate' || coding === 'br' || coding === 'zstd') codings.push(coding)
    else return null
  }
  return codings
}

export interface DecodedBody {
  readonly body: Buffer
  /** The cap cut it. */
  readonly cut: boolean
  /** The coded bytes are broken; `body` is what came before. */
  readonly broken: boolean
}

export interface BodyDecoder {
  push(chunk: Buffer): void
  /** `complete`: all coded bytes were pushed; if not, what there is is decoded as far as it goes. */
  end(complete: boolean, done: (result: DecodedBody) => void): void
  /** Forgets everything; no callback comes any more. */
  abort(): void
}

/**
 * Undoes content codings while the body arrives, holding at most `maxBodyBytes` decoded bytes: `onCut` is called as soon
 * as there would be more, so that a bomb costs its first kilobytes. Small bodies are decoded whole at their end.
 */
export function createBodyDecoder(
  codings: readonly ContentCoding[],
  maxBodyBytes: number,
  onCut: () => void,
): BodyDecoder {
  const held: Buffer[] = []
  let heldBytes = 0
  let stream: DecodeStream | null = null

  function startStream(): DecodeStream {
    const started = createDecodeStream(codings, maxBodyBytes, onCut)
    for (const chunk of held) started.push(chunk)
    held.length = 0
    return started
  }

  return {
    push(chunk) {
      if (stream !== null) return stream.push(chunk)
      held.push(chunk)
      heldBytes += chunk.length
      if (heldBytes > wholeBytes) stream = startStream()
    },
    end(complete, done) {
      if (stream === null) {
        const whole = decodeWhole(codings, held, maxBodyBytes, complete)
        if (whole !== null) return done(whole)
        stream = startStream()
      }
      stream.end(complete, done)
    },
    abort() {
      held.length = 0
      stream?.abort()
    },
  }
}

/** Null: it does not decode in one call (too large or broken), so the stream must find out how far it goes. */
function decodeWhole(
  codings: readonly ContentCoding[],
  chunks: readonly Buffer[],
  maxBodyBytes: number,
  complete: boolean,
): DecodedBody | null {
  let bytes: Buffer = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
  if (bytes.length === 0) return { body: bytes, cut: false, broken: false }
  if (!complete) return null
  try {
    // Undone in the reverse of the order in which they were applied.
    for (const coding of codings.toReversed()) bytes = decodeSync(coding, bytes, maxBodyBytes)
  } catch {
    return null
  }
  return { body: bytes, cut: false, broken: false }
}

function decodeSync(coding: ContentCoding, bytes: Buffer, maxOutputLength: number): Buffer {
  switch (coding) {
    case 'gzip':
      return zlib.gunzipSync(bytes, { maxOutputLength })
    case 'deflate':
      return hasZlibHeader(bytes)
        ? zlib.inflateSync(bytes, { maxOutputLength })
        : zlib.inflateRawSync(bytes, { maxOutputLength })
    case 'br':
      return zlib.brotliDecompressSync(bytes, { maxOutputLength })
    case 'zstd':
      return zlib.zstdDecompressSync(bytes, {
        maxOutputLength,
        params: zstdParams,
      })
  }
}

const zstdParams = { [zlib.constants.ZSTD_d_windowLogMax]: zstdWindowLog }

/** RFC 1950 §2.2. "deflate" should be zlib, but some servers send raw deflate. */
function hasZlibHeader(bytes: Buffer): boolean {
  if (bytes.length < 2) return true
  return (bytes[0]! & 0x0f) === 8 && (bytes[0]! * 256 + bytes[1]!) % 31 === 0
}

interface DecodeStream {
  push(chunk: Buffer): void
  end(complete: boolean, done: (result: DecodedBody) => void): void
  abort(): void
}

function createDecodeStream(codings: readonly ContentCoding[], maxBodyBytes: number, onCut: () => void): DecodeStream {
  const output: Buffer[] = []
  let outputBytes = 0
  let stages: Transform[] = []
  let state: 'open' | 'cut' | 'broken' | 'ended' | 'aborted' = 'open'
  let complete = true
  let whenEnded: ((result: DecodedBody) => void) | null = null

  function finish(as: 'cut' | 'broken' | 'ended'): void {
    if (state !== 'open') return
    state = as
    for (const stage of stages) stage.destroy()
    if (as === 'cut') onCut()
    report()
  }
  function report(): void {
    if (whenEnded === null || state === 'open' || state === 'aborted') return
    const done = whenEnded
    whenEnded = null
    // A body that was cut off by the connection breaks its coding too: that is no fault of the coding.
    done({
      body: Buffer.concat(output),
      cut: state === 'cut',
      broken: state === 'broken' && complete,
    })
  }
  function start(first: Buffer): void {
    stages = codings.toReversed().map((coding, i) => createStage(coding, i === 0 ? first : null))
    stages.forEach((stage, i) => {
      stage.on('error', () => finish('broken'))
      const next = stages[i + 1]
      if (next !== undefined) {
        stage.pipe(next)
        return
      }
      stage.on('data', (chunk: Buffer) => {
        if (state !== 'open') return
        const room = maxBodyBytes - outputBytes
        output.push(chunk.length > room ? chunk.subarray(0, room) : chunk)
        outputBytes += Math.min(chunk.length, room)
        if (chunk.length > room) finish('cut')
      })
      stage.on('end', () => finish('ended'))
    })
  }

  return {
    push(chunk) {
      if (state !== 'open' || chunk.length === 0) return
      if (stages.length === 0) start(chunk)
      stages[0]!.write(chunk)
    },
    end(all, done) {
      complete = all
      whenEnded = done
      if (state !== 'open') report()
      else if (stages.length === 0) finish('ended')
      else stages[0]!.end()
    },
    abort() {
      state = 'aborted'
      for (const stage of stages) stage.destroy()
    },
  }
}

function createStage(coding: ContentCoding, first: Buffer | null): Transform {
  switch (coding) {
    case 'gzip':
      return zlib.createGunzip({ chunkSize: chunkBytes })
    case 'deflate':
      return first === null || hasZlibHeader(first)
        ? zlib.createInflate({ chunkSize: chunkBytes })
        : zlib.createInflateRaw({ chunkSize: chunkBytes })
    case 'br':
      return zlib.createBrotliDecompress({ chunkSize: chunkBytes })
    case 'zstd':
      return zlib.createZstdDecompress({
        chunkSize: chunkBytes,
        params: zstdParams,
      })
  }
}
