import type { TaskId } from '../../connectors/log/types.ts'
import type { State } from './state.ts'

/** What happens in the streams, for logs and metrics. Never one for each record that went well. */
export type StreamsEvent =
  | { readonly kind: 'state'; readonly from: State; readonly to: State }
  | {
      readonly kind: 'task-ready'
      readonly applicationId: string
      readonly taskId: TaskId
      readonly restored: number
    }
  | {
      readonly kind: 'dead-letter'
      readonly applicationId: string
      readonly taskId: TaskId
      readonly topic: string
      readonly partition: number
      readonly offset: number
      readonly error: unknown
    }
  | {
      readonly kind: 'retry'
      readonly applicationId: string
      readonly taskId: TaskId
      readonly delayMs: number
      readonly error: unknown
    }
  | {
      readonly kind: 'task-stopped'
      readonly applicationId: string
      readonly taskId: TaskId
      readonly error: unknown
    }
  | {
      readonly kind: 'work-failed'
      readonly applicationId: string
      readonly error: unknown
    }
  | {
      readonly kind: 'committed'
      readonly records: number
      readonly bytes: number
      readonly durationMs: number
    }
  | { readonly kind: 'aborted'; readonly error: Error }
  | { readonly kind: 'fenced'; readonly by: 'epoch' | 'producer' }
  | { readonly kind: 'uncaught'; readonly error: unknown }
