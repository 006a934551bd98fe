import type { MaybePromise } from '../../connectors/log/types.ts'

/**
 * Work that may have to wait, written once: a generator that yields what it waits for. The runtime awaits it, the test
 * driver takes only answers that are there at once. This file is the only place that knows the difference.
 */
export type Steps<T> = Generator<PromiseLike<unknown>, T, unknown>

/** Inside Steps: `const answer = yield* wait(port.ask())`. Costs nothing when the answer is no promise. */
export function* wait<T>(answer: MaybePromise<T>): Steps<T> {
  if (!isPromise(answer)) return answer
  return (yield answer) as T
}

/** Throws when a step answers with a promise. */
export function runSync<T>(steps: Steps<T>): T {
  const result = steps.next()
  if (result.done) return result.value
  // The promise's own failure must not end the process as an unhandled rejection.
  Promise.resolve(result.value).catch(() => {})
  steps.return(undefined as T)
  throw new Error('running synchronously: a port answered with a promise')
}

export async function runAsync<T>(steps: Steps<T>): Promise<T> {
  let result = steps.next()
  while (!result.done) {
    let answer: unknown
    try {
      answer = await result.value
    } catch (error) {
      result = steps.throw(error)
      continue
    }
    result = steps.next(answer)
  }
  return result.value
}

function isPromise<T>(answer: MaybePromise<T>): answer is Promise<T> {
  return answer instanceof Promise
}
