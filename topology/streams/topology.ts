import { TopologyError } from './errors.ts'
import type { ProcessorSupplier, Serde, StoreBuilder, StreamPartitioner, TimestampExtractor } from './types.ts'

export interface SourceOptions<K, V> {
  readonly topics: readonly string[]
  readonly keySerde: Serde<K>
  readonly valueSerde: Serde<V>
  /** Absent = the record's own timestamp. */
  readonly timestampExtractor?: TimestampExtractor<K, V>
}

export interface SinkOptions<K, V> {
  readonly topic: string
  readonly keySerde: Serde<K>
  readonly valueSerde: Serde<V>
  /** Always ours: nothing is left to a producer's default. */
  readonly partitioner: StreamPartitioner<K, V>
}

interface NodeBase {
  readonly name: string
  readonly parents: readonly string[]
  readonly children: string[]
}
export interface SourceNode extends NodeBase {
  readonly kind: 'source'
  readonly options: SourceOptions<unknown, unknown>
}
export interface ProcessorNode extends NodeBase {
  readonly kind: 'processor'
  readonly supplier: ProcessorSupplier<unknown, unknown, unknown, unknown>
  readonly stores: string[]
}
export interface SinkNode extends NodeBase {
  readonly kind: 'sink'
  readonly options: SinkOptions<unknown, unknown>
}
export type TopologyNode = SourceNode | ProcessorNode | SinkNode

/** Nodes connected by edges or by a shared store: what one task runs. Each list is in the order of adding. */
export interface SubTopology {
  readonly id: number
  readonly sources: readonly SourceNode[]
  readonly processors: readonly ProcessorNode[]
  readonly sinks: readonly SinkNode[]
  readonly stores: readonly StoreBuilder<unknown, unknown>[]
}

/**
 * What an application computes, as a plain value: named nodes and the edges between them. A parent must be there
 * before its children, so a cycle cannot be written. Every mistake throws TopologyError and names the node.
 */
export class Topology {
  readonly name: string
  readonly #nodes = new Map<string, TopologyNode>()
  readonly #stores = new Map<string, { builder: StoreBuilder<unknown, unknown>; processors: readonly string[] }>()

  /** `name`: the application's suffix, e.g. `dedupe`. */
  constructor(name: string) {
    checkName('a topology', name)
    this.name = name
  }

  addSource<K, V>(name: string, options: SourceOptions<K, V>): this {
    this.#checkFree(name)
    if (options.topics.length === 0) throw new TopologyError(`source "${name}" has no topics`)
    for (const topic of options.topics) {
      const other = this.sources().find((s) => s.options.topics.includes(topic))
      if (other !== undefined)
        throw new TopologyError(`source "${name}": topic "${topic}" is read by source "${other.name}" already`)
    }
    if (new Set(options.topics).size !== options.topics.length)
      throw new TopologyError(`source "${name}" names a topic twice`)
    return this.#add({
      kind: 'source',
      name,
      parents: [],
      children: [],
      options: options as unknown as SourceOptions<unknown, unknown>,
    })
  }

  addProcessor<KIn, VIn, KOut, VOut>(
    name: string,
    supplier: ProcessorSupplier<KIn, VIn, KOut, VOut>,
    parents: readonly string[],
  ): this {
    this.#checkFree(name)
    this.#checkParents('processor', name, parents)
    return this.#add({
      kind: 'processor',
      name,
      parents: [...parents],
      children: [],
      stores: [],
      supplier: supplier as unknown as ProcessorSupplier<unknown, unknown, unknown, unknown>,
    })
  }

  addSink<K, V>(name: string, options: SinkOptions<K, V>, parents: readonly string[]): this {
    this.#checkFree(name)
    this.#checkParents('sink', name, parents)
    return this.#add({
      kind: 'sink',
      name,
      parents: [...parents],
      children: [],
      options: options as unknown as SinkOptions<unknown, unknown>,
    })
  }

  /** A key-value store with a changelog, shared by the processors named (which it joins into one sub-topology). */
  addStateStore<K, V>(builder: StoreBuilder<K, V>, processors: readonly string[]): this {
    checkName('a state store', builder.name)
    if (this.#stores.has(builder.name)) throw new TopologyError(`state store "${builder.name}" is added twice`)
    if (processors.length === 0) throw new TopologyError(`state store "${builder.name}" is connected to no processor`)
    const nodes = processors.map((name) => {
      const node = this.#nodes.get(name)
      if (node === undefined) throw new TopologyError(`state store "${builder.name}": processor "${name}" is unknown`)
      if (node.kind !== 'processor')
        throw new TopologyError(`state store "${builder.name}": "${name}" is a ${node.kind}, not a processor`)
      if (node.stores.includes(builder.name))
        throw new TopologyError(`state store "${builder.name}" names processor "${name}" twice`)
      return node
    })
    for (const node of nodes) node.stores.push(builder.name)
    this.#stores.set(builder.name, {
      builder: builder as unknown as StoreBuilder<unknown, unknown>,
      processors: [...processors],
    })
    return this
  }

  node(name: string): TopologyNode {
    const node = this.#nodes.get(name)
    if (node === undefined) throw new TopologyError(`topology "${this.name}" has no node "${name}"`)
    return node
  }

  nodes(): readonly TopologyNode[] {
    return [...this.#nodes.values()]
  }

  sources(): readonly SourceNode[] {
    return this.nodes().filter((n) => n.kind === 'source')
  }

  stores(): readonly StoreBuilder<unknown, unknown>[] {
    return [...this.#stores.values()].map((s) => s.builder)
  }

  /** Topics read, then topics written, each once. */
  topics(): readonly string[] {
    const names = new Set<string>()
    for (const source of this.sources()) for (const topic of source.options.topics) names.add(topic)
    for (const node of this.#nodes.values()) if (node.kind === 'sink') names.add(node.options.topic)
    return [...names]
  }

  /** Connected components, numbered as in Java by the name of their first source: ids are in task ids and on disk. */
  subTopologies(): readonly SubTopology[] {
    if (this.#nodes.size === 0) throw new TopologyError(`topology "${this.name}" has no nodes`)
    const seen = new Set<string>()
    const result: SubTopology[] = []
    for (const source of this.sources()
      .map((s) => s.name)
      .sort()) {
      if (seen.has(source)) continue
      const members = this.#component(source)
      for (const name of members) seen.add(name)
      const nodes = this.nodes().filter((n) => members.has(n.name))
      result.push({
        id: result.length,
        sources: nodes.filter((n) => n.kind === 'source'),
        processors: nodes.filter((n) => n.kind === 'processor'),
        sinks: nodes.filter((n) => n.kind === 'sink'),
        stores: [...this.#stores.values()].filter((s) => members.has(s.processors[0]!)).map((s) => s.builder),
      })
    }
    return result
  }

  /** The text of Java's `TopologyDescription`, to the space (the first sub-topology has one more). */
  describe(): string {
    let text = 'Topologies:\n '
    for (const sub of this.subTopologies()) {
      text += `  Sub-topology: ${sub.id}\n`
      for (const node of [...sub.sources, ...sub.processors, ...sub.sinks].sort((a, b) => this.#compare(a, b))) {
        text += `    ${this.#describeNode(node)}\n`
      }
      text += '\n'
    }
    return text
  }

  #describeNode(node: TopologyNode): string {
    const names = (list: readonly string[]): string =>
      list.length === 0 ? 'none' : [...list].sort((a, b) => this.#compare(this.node(a), this.node(b))).join(', ')
    const children = `\n      --> ${names(node.children)}`
    const parents = `\n      <-- ${names(node.parents)}`
    if (node.kind === 'source') return `Source: ${node.name} (topics: [${node.options.topics.join(', ')}])${children}`
    if (node.kind === 'sink') return `Sink: ${node.name} (topic: ${node.options.topic})${parents}`
    return `Processor: ${node.name} (stores: [${[...node.stores].sort().join(', ')}])${children}${parents}`
  }

  /** Java's order: what has more below it comes first, then by name. */
  #compare(a: TopologyNode, b: TopologyNode): number {
    return this.#size(b) - this.#size(a) || (a.name < b.name ? -1 : 1)
  }

  #size(node: TopologyNode): number {
    let size = 1
    for (const child of node.children) size += this.#size(this.node(child))
    return size
  }

  #component(start: string): Set<string> {
    const members = new Set([start])
    const stack = [start]
    for (let name = stack.pop(); name !== undefined; name = stack.pop()) {
      const node = this.node(name)
      const neighbours = [...node.parents, ...node.children]
      if (node.kind === 'processor') {
        for (const store of node.stores) neighbours.push(...this.#stores.get(store)!.processors)
      }
      for (const neighbour of neighbours) {
        if (members.has(neighbour)) continue
        members.add(neighbour)
        stack.push(neighbour)
      }
    }
    return members
  }

  #add(node: TopologyNode): this {
    this.#nodes.set(node.name, node)
    for (const parent of node.parents) this.node(parent).children.push(node.name)
    return this
  }

  #checkFree(name: string): void {
    checkName('a node', name)
    if (this.#nodes.has(name)) throw new TopologyError(`two nodes of topology "${this.name}" have the name "${name}"`)
  }

  #checkParents(kind: 'processor' | 'sink', name: string, parents: readonly string[]): void {
    if (parents.length === 0) throw new TopologyError(`${kind} "${name}" has no parents`)
    if (new Set(parents).size !== parents.length) throw new TopologyError(`${kind} "${name}" names a parent twice`)
    for (const parent of parents) {
      const node = this.#nodes.get(parent)
      if (node === undefined) throw new TopologyError(`${kind} "${name}": parent "${parent}" is unknown`)
      if (node.kind === 'sink')
        throw new TopologyError(`${kind} "${name}": parent "${parent}" is a sink, which has no children`)
    }
  }
}

/** Names are part of topic and directory names. */
function checkName(what: string, name: string): void {
  if (!/^[A-Za-z0-9._-]{1,200}$/.test(name)) {
    throw new TopologyError(`${what} has the name ${JSON.stringify(name)}: names are 1 to 200 of A-Z a-z 0-9 . _ -`)
  }
}
