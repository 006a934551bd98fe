/** Work of one application with guarantee `ack_on_take`. */
export interface Work {
  readonly owner: WorkOwner
  readonly key: string
  readonly start: (done: () => void) => void
}
/** The task that took it; work of a task that is gone is never started. */
export interface WorkOwner {
  isLive: boolean
  inFlight: number
}

/**
 * Takes and runs work: at most `maxInFlight` at a time, one at a time for each key, in the order of taking. Work
 * waits for the commit of the offset it came with.
 */
export class AsyncStage {
  readonly maxInFlight: number
  readonly #onError: (error: unknown) => void
  /** Taken, its offset not committed. */
  readonly #taken: Work[] = []
  /** Committed; the head of a key's queue runs or is in `#ready`. */
  readonly #queues = new Map<string, Work[]>()
  #ready: Work[] = []
  #readyAt = 0
  #running = 0
  #count = 0
  #pumping = false

  /** `onError`: what `start` threw; the work then counts as done. */
  constructor(maxInFlight: number, onError: (error: unknown) => void) {
    if (!(maxInFlight >= 1)) throw new RangeError(`maxInFlight is ${maxInFlight}, it must be at least 1`)
    this.maxInFlight = maxInFlight
    this.#onError = onError
  }

  /** Taken and not done. */
  get inFlight(): number {
    return this.#count
  }
  get isFull(): boolean {
    return this.#count >= this.maxInFlight
  }
  /** Takes that wait for their commit. */
  get taken(): number {
    return this.#taken.length
  }

  take(work: Work): void {
    this.#taken.push(work)
    work.owner.inFlight++
    this.#count++
  }

  /** Drops the takes after the first `length`: a record failed, or the commit did. */
  dropTakes(length: number): void {
    for (const work of this.#taken.splice(length)) this.#forget(work)
  }

  /** Their offsets are committed. */
  startTaken(): void {
    for (const work of this.#taken.splice(0)) {
      const queue = this.#queues.get(work.key)
      if (queue !== undefined) {
        queue.push(work)
        continue
      }
      this.#queues.set(work.key, [work])
      this.#ready.push(work)
    }
    this.#pump()
  }

  /** Forgets what the tasks that are no longer live had taken. Work that runs is no longer counted. */
  dropDead(): void {
    for (const work of this.#taken.splice(0)) {
      if (work.owner.isLive) this.#taken.push(work)
      else this.#forget(work)
    }
    for (const queue of [...this.#queues.values()]) {
      const head = queue[0]!
      const isReady = this.#ready.includes(head, this.#readyAt)
      for (const work of queue.slice(1)) if (!work.owner.isLive) this.#remove(queue, work)
      if (head.owner.isLive) continue
      if (isReady) this.#ready.splice(this.#ready.indexOf(head, this.#readyAt), 1)
      else this.#running--
      this.#next(head)
    }
    this.#pump()
  }

  /** Starts what may start. A loop, so that work that ends at once does not nest. */
  #pump(): void {
    if (this.#pumping) return
    this.#pumping = true
    while (this.#running < this.maxInFlight && this.#readyAt < this.#ready.length) {
      const work = this.#ready[this.#readyAt++]!
      if (this.#readyAt === this.#ready.length) {
        this.#ready = []
        this.#readyAt = 0
      }
      this.#running++
      this.#start(work)
    }
    this.#pumping = false
  }

  #start(work: Work): void {
    let isDone = false
    const done = (): void => {
      if (isDone || !work.owner.isLive) return
      isDone = true
      this.#running--
      this.#next(work)
      this.#pump()
    }
    try {
      work.start(done)
    } catch (error) {
      done()
      this.#onError(error)
    }
  }

  /** The head of a key's queue has ended. */
  #next(head: Work): void {
    const queue = this.#queues.get(head.key)!
    this.#remove(queue, head)
    if (queue.length === 0) this.#queues.delete(head.key)
    else this.#ready.push(queue[0]!)
  }

  #remove(queue: Work[], work: Work): void {
    queue.splice(queue.indexOf(work), 1)
    this.#forget(work)
  }

  #forget(work: Work): void {
    work.owner.inFlight--
    this.#count--
  }
}
