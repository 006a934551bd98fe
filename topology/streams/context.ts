import type { Clock } from '../../connectors/clock/types.ts'
import type { Headers } from '../../connectors/log/types.ts'
import { RecordError, TopologyError } from './errors.ts'
import type { TargetTopic } from './outputs.ts'
import type { Task } from './task.ts'
import type { ProcessorNode, SinkNode, SourceNode } from './topology.ts'
import type {
  AsyncContext,
  Cancellable,
  KeyValueStore,
  Processor,
  ProcessorContext,
  PunctuationType,
  Punctuator,
  Record,
  RecordMetadata,
} from './types.ts'

type Forwarded = {
  key: unknown
  value: unknown
  timestamp?: number
  headers?: Headers
}
/** A node as its parents see it. `timestampMs`: of the record, resolved. */
type Child = {
  readonly name: string
  receive(record: Forwarded, timestampMs: number): void
}

/** The wired processors of one task. */
export class TaskContext {
  readonly #task: Task
  readonly #children = new Map<string, Child>()

  constructor(task: Task) {
    this.#task = task
  }

  /** Makes all processors, in the order of adding. */
  start(): Processor<unknown, unknown>[] {
    const { processors, sinks } = this.#task.options.subTopology
    const processorOf = new Map<string, Processor<unknown, unknown>>()
    for (const node of sinks) this.#children.set(node.name, new Sink(this.#task, node))
    for (const node of processors) {
      this.#children.set(
        node.name,
        processorChild(this.#task, node, (name) => processorOf.get(name)!),
      )
    }
    return processors.map((node) => {
      const context = new NodeContext(this.#task, node, this.#childrenOf(node))
      const processor = node.supplier(context)
      processorOf.set(node.name, processor)
      return processor
    })
  }

  /** Where the records of a source go in. */
  entry(source: SourceNode): (record: Record<unknown, unknown>) => void {
    const children = this.#childrenOf(source)
    const [only] = children
    if (children.length === 1) return (record) => only!.receive(record, record.timestamp)
    return (record) => {
      for (const child of children) child.receive(record, record.timestamp)
    }
  }

  #childrenOf(node: { readonly children: readonly string[] }): Child[] {
    return node.children.map((name) => this.#children.get(name)!)
  }
}

function processorChild(task: Task, node: ProcessorNode, find: (name: string) => Processor<unknown, unknown>): Child {
  let processor: Processor<unknown, unknown> | undefined
  return {
    name: node.name,
    receive(record, timestampMs) {
      processor ??= find(node.name)
      const before = task.timestampMs
      task.timestampMs = timestampMs
      processor.process(
        record.timestamp === undefined ? { ...record, timestamp: timestampMs } : (record as Record<unknown, unknown>),
      )
      task.timestampMs = before
    },
  }
}

class Sink implements Child {
  readonly name: string
  readonly #task: Task
  readonly #node: SinkNode
  readonly #topic: TargetTopic

  constructor(task: Task, node: SinkNode) {
    this.name = node.name
    this.#task = task
    this.#node = node
    this.#topic = task.options.env.topic(node.options.topic)
  }

  receive(record: Forwarded, timestampMs: number): void {
    const { keySerde, valueSerde, partitioner } = this.#node.options
    const { key, value, headers = noHeaders } = record
    let keyBytes: Uint8Array | null
    let valueBytes: Uint8Array | null
    try {
      keyBytes = key === null || key === undefined ? null : keySerde.serialize(key)
      valueBytes = value === null || value === undefined ? null : valueSerde.serialize(value)
    } catch (cause) {
      throw this.#error('serialization', cause)
    }
    let partitions: number | readonly number[]
    try {
      partitions = partitioner(key, value ?? null, this.#topic.slots.length)
    } catch (cause) {
      throw this.#error('partitioning', cause)
    }
    const { forwards } = this.#task
    if (typeof partitions === 'number') {
      forwards.add(this.#topic, partitions, keyBytes, valueBytes, timestampMs, headers)
      return
    }
    for (const partition of partitions) {
      forwards.add(this.#topic, partition, keyBytes, valueBytes, timestampMs, headers)
    }
  }

  #error(code: 'serialization' | 'partitioning', cause: unknown): RecordError {
    const text = cause instanceof Error ? cause.message : String(cause)
    return new RecordError(code, `forwarding to sink ${this.name} (topic ${this.#topic.name}): ${text}`, { cause })
  }
}

const noHeaders: Headers = []

class NodeContext implements ProcessorContext<unknown, unknown> {
  readonly applicationId: string
  readonly taskId: string
  readonly partitions: number
  readonly partition: number
  readonly clock: Clock
  readonly #task: Task
  readonly #node: ProcessorNode
  readonly #children: readonly Child[]
  readonly #async: AsyncContext | undefined

  constructor(task: Task, node: ProcessorNode, children: readonly Child[]) {
    const { applicationId, id, partition, partitions, env, stage } = task.options
    this.applicationId = applicationId
    this.taskId = id
    this.partitions = partitions
    this.partition = partition
    this.clock = env.clock
    this.#task = task
    this.#node = node
    this.#children = children
    const { life } = task
    this.#async = stage && {
      take: (key, start) => stage.take({ owner: life, key, start }),
      complete: (event, acked) => task.complete(life, event, acked),
      inFlight: () => life.inFlight,
    }
  }

  forward(record: Forwarded, childName?: string): void {
    if (!this.#task.isOpen) {
      throw new TopologyError(
        `processor "${this.#node.name}" forwards outside a record, punctuation, flush or completion`,
      )
    }
    const timestampMs = record.timestamp ?? this.#task.timestampMs
    if (childName === undefined) {
      for (const child of this.#children) child.receive(record, timestampMs)
      return
    }
    for (const child of this.#children) {
      if (child.name !== childName) continue
      child.receive(record, timestampMs)
      return
    }
    throw new TopologyError(`processor "${this.#node.name}" has no child "${childName}"`)
  }

  schedule(intervalMs: number, type: PunctuationType, punctuator: Punctuator): Cancellable {
    const task = this.#task
    // As in Java stream time counts from 0: the first record calls the punctuator.
    if (type === 'stream-time') return task.streamPunctuations.add(intervalMs, intervalMs, punctuator)
    return task.wallPunctuations.add(intervalMs, this.clock.monotonicMs() + intervalMs, punctuator)
  }

  commit(): void {
    this.#task.options.env.requestCommit()
  }

  getStateStore<K, V>(name: string): KeyValueStore<K, V> {
    const store = this.#task.options.stores.find((s) => s.name === name)
    if (store === undefined || !this.#node.stores.includes(name)) {
      throw new TopologyError(`processor "${this.#node.name}" is not connected to a state store "${name}"`)
    }
    return store as unknown as KeyValueStore<K, V>
  }

  recordMetadata(): RecordMetadata | undefined {
    const { current, currentOffset } = this.#task
    if (current === undefined) return undefined
    return {
      topic: current.input.topic,
      partition: current.input.partition,
      offset: currentOffset,
    }
  }

  currentSystemTimeMs(): number {
    return this.clock.nowMs()
  }

  currentStreamTimeMs(): number {
    return this.#task.streamTimeMs
  }

  seekToBeginning(topic: string): void {
    this.#task.seekToBeginning(topic)
  }

  caughtUp(): boolean {
    return this.#task.isCaughtUp()
  }

  position(topic: string): { next: number; high: number; highAtMs: number } {
    const input = this.#task.input(topic)
    const { high, atMs } = this.#task.options.env.ends(input.input)
    return { next: input.next, high, highAtMs: atMs }
  }

  get async(): AsyncContext {
    if (this.#async === undefined) {
      throw new TopologyError(`processor "${this.#node.name}": async stages need the guarantee ack_on_take`)
    }
    return this.#async
  }
}
