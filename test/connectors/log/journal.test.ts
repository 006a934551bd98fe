import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createVirtualClock } from '../../../connectors/clock/virtual.ts'
import { frameHeadBytes, readFrameHead, sealFrameHead } from '../../../connectors/log/embedded/frame.ts'
import { type JournalIo, nodeIo } from '../../../connectors/log/embedded/io.ts'
import { type EmbeddedLog, openEmbeddedLog } from '../../../connectors/log/embedded/open.ts'
import type { Lane, Log } from '../../../connectors/log/types.ts'
import { append, commitValues, offsets, openTopics, toolEpoch, valuesOf } from '../../suites/log/harness.ts'
import { embeddedHarness, journalBytes, journalNames, unsafeIo } from './embedded-harness.ts'

const firstFile = '00000000000000000000.log'

/** A journal with one frame for each of the topics and one for each value, in order, as bytes. */
async function journalOf(values: readonly string[]): Promise<{ bytes: Buffer; frames: number[] }> {
  const harness = embeddedHarness()
  try {
    const log = await openTopics(harness)
    const lane = await log.lane('l')
    for (const value of values) await commitWithPosition(log, lane, value)
    await log.close()
    const bytes = journalBytes(harness.dir())
    return { bytes, frames: framesOf(bytes) }
  } finally {
    await harness.close()
  }
}

async function commitWithPosition(log: Log, lane: Lane, value: string): Promise<void> {
  const unit = lane.begin('atomic')
  append(unit, log.partition('a', 0), value)
  append(unit, log.partition('a', 1), `${value}'`)
  const at = offsets('g', toolEpoch, [log.input('g', 'b', 0), value.length, value])
  assert.equal((await unit.commit([at])).kind, 'committed')
}

function framesOf(bytes: Buffer): number[] {
  const frames: number[] = []
  for (let at = 0; at < bytes.length; ) {
    frames.push(at)
    at += frameHeadBytes + readFrameHead(bytes, at, at)!.bodyLength
  }
  return frames
}

/** Runs `body` with a function that opens a journal of these bytes. */
async function withJournals(
  body: (open: (bytes: Buffer) => Promise<EmbeddedLog>, again: () => Promise<EmbeddedLog>) => Promise<void>,
): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'weir-journal-'))
  let count = 0
  const openDir = () => openEmbeddedLog({ dir: join(root, String(count)), clock: createVirtualClock(0), io: unsafeIo })
  try {
    await body((bytes) => {
      count++
      mkdirSync(join(root, String(count)))
      writeFileSync(join(root, String(count), firstFile), bytes)
      return openDir()
    }, openDir)
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}

test('P1: cut at any byte of its last three frames, a journal opens with all whole frames and goes on', async () => {
  const values = ['one', 'two', 'three', 'four', 'five']
  const { bytes, frames } = await journalOf(values)
  const firstCut = frames.at(-3)!
  await withJournals(async (open, again) => {
    for (let cut = firstCut; cut <= bytes.length; cut++) {
      const log = await open(bytes.subarray(0, cut))
      const whole = frames.findLast((start) => start <= cut)!
      const goodEnd = cut === bytes.length ? cut : whole
      const expected = values.slice(0, cut === bytes.length ? 5 : frames.indexOf(whole) - 2)
      assert.equal(log.recovery.droppedBytes, cut - goodEnd, `cut at ${cut}`)
      assert.deepEqual(await valuesOf(log, log.partition('a', 0)), expected, `cut at ${cut}`)
      assert.deepEqual(
        await valuesOf(log, log.partition('a', 1)),
        expected.map((value) => `${value}'`),
      )
      const position = (await log.positions('g', [log.partition('b', 0)])).get(log.partition('b', 0))
      assert.equal(position?.meta, expected.at(-1))
      await commitWithPosition(log, await log.lane('l'), 'more')
      await log.close()
      const reopened = await again()
      assert.equal(reopened.recovery.droppedBytes, 0)
      assert.deepEqual(await valuesOf(reopened, reopened.partition('a', 0)), [...expected, 'more'])
      await reopened.close()
    }
  })
})

test('any byte that changes in a frame with later ones is refused by file and position', async () => {
  const { bytes, frames } = await journalOf(['one', 'two', 'three', 'four'])
  const [start, end] = [frames.at(-3)!, frames.at(-2)!]
  await withJournals(async (open) => {
    for (let at = start; at < end; at++) {
      const changed = Buffer.from(bytes)
      changed[at]! ^= 1 << (at % 8)
      const refused = { code: 'journal-broken', message: new RegExp(`${firstFile} at byte ${start}\\b`) }
      await assert.rejects(open(changed), refused, `byte ${at}`)
    }
  })
})

test('a refused journal is left as it was', async () => {
  const { bytes, frames } = await journalOf(['one', 'two', 'three'])
  const changed = Buffer.from(bytes)
  changed[frames.at(-2)! + 50]! ^= 1
  const dir = mkdtempSync(join(tmpdir(), 'weir-journal-'))
  try {
    writeFileSync(join(dir, firstFile), changed)
    await assert.rejects(openEmbeddedLog({ dir, clock: createVirtualClock(0) }), { code: 'journal-broken' })
    assert.deepEqual(readFileSync(join(dir, firstFile)), changed)
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
})

test('any byte that changes in the last frame loses that frame alone, or nothing', async () => {
  const { bytes, frames } = await journalOf(['one', 'two'])
  await withJournals(async (open) => {
    for (let at = frames.at(-1)!; at < bytes.length; at++) {
      const changed = Buffer.from(bytes)
      changed[at]! ^= 0x10
      const log = await open(changed)
      assert.deepEqual(await valuesOf(log, log.partition('a', 0)), ['one'], `byte ${at}`)
      await log.close()
    }
  })
})

test('a frame of a newer version is refused, whole or last', async () => {
  const { bytes, frames } = await journalOf(['one', 'two'])
  const changed = Buffer.from(bytes)
  const at = frames.at(-1)!
  changed[at + 4] = 2
  sealFrameHead(changed, at)
  await withJournals(async (open) => {
    await assert.rejects(open(changed), { code: 'journal-newer', message: new RegExp(`byte ${at}: .*version 2`) })
  })
})

test('a journal inside a record is not taken for frames', async () => {
  const { bytes } = await journalOf(['one', 'two', 'three'])
  const harness = embeddedHarness()
  try {
    const log = await openTopics(harness)
    const lane = await log.lane('l')
    await commitValues(lane, log.partition('a', 0), 'safe')
    const unit = lane.begin('atomic')
    append(unit, log.partition('a', 0), { value: bytes.toString('latin1') })
    void unit.commit([])
    const again = await harness.reopen((all) => all.subarray(0, all.length - 1))
    assert.deepEqual(await valuesOf(again, again.partition('a', 0)), ['safe'])
    assert.ok(again.recovery.droppedBytes > bytes.length)
  } finally {
    await harness.close()
  }
})

test('of frames that no sync had covered, those behind a torn one are dropped with it', async () => {
  const harness = embeddedHarness()
  try {
    const log = await openTopics(harness)
    const lane = await log.lane('l')
    await commitValues(lane, log.partition('a', 0), 'durable')
    for (const value of ['torn', 'whole', 'whole too']) {
      const unit = lane.begin('atomic')
      append(unit, log.partition('a', 0), value)
      void unit.commit([])
    }
    const again = await harness.reopen((bytes, durable) => {
      const torn = Buffer.from(bytes)
      torn[durable + 60]! ^= 0xff
      return torn
    })
    assert.deepEqual(await valuesOf(again, again.partition('a', 0)), ['durable'])
    assert.ok(again.recovery.droppedBytes > 0)
  } finally {
    await harness.close()
  }
})

test('a frame knows only those as durable that were written before the sync began', async () => {
  const held: (() => void)[] = []
  let holds = false
  const io: JournalIo = {
    ...nodeIo,
    datasync(fd, done) {
      if (holds) held.push(() => nodeIo.datasync(fd, done))
      else nodeIo.datasync(fd, done)
    },
  }
  const harness = embeddedHarness({ io })
  try {
    const log = await openTopics(harness)
    const to = log.partition('a', 0)
    const lane = await log.lane('l')
    holds = true
    const durable = commitValues(lane, to, 'durable')
    await new Promise((resolve) => setImmediate(resolve))
    assert.equal(held.length, 1)
    const tornAt = journalBytes(harness.dir()).length
    const during = commitValues(lane, to, 'torn')
    held.shift()!()
    assert.equal(await durable, 1)
    assert.equal((await log.ends(to)).stable, 1)
    const whole = commitValues(lane, to, 'whole')
    const again = await harness.reopen((bytes) => {
      const torn = Buffer.from(bytes)
      torn[tornAt + 50]! ^= 1
      return torn
    })
    assert.deepEqual(await valuesOf(again, again.partition('a', 0)), ['durable'])
    holds = false
    for (const sync of held.splice(0)) sync()
    assert.deepEqual(await Promise.all([during, whole]), [2, 3])
  } finally {
    holds = false
    for (const sync of held.splice(0)) sync()
    await harness.close()
  }
})

test('what opening found and showed survives a power cut right after', async () => {
  const harness = embeddedHarness()
  try {
    const log = await openTopics(harness)
    const unit = (await log.lane('l')).begin('atomic')
    append(unit, log.partition('a', 0), 'written, never synced')
    void unit.commit([])
    const killed = await harness.reopen((bytes) => bytes)
    assert.deepEqual(await valuesOf(killed, killed.partition('a', 0)), ['written, never synced'])
    const cut = await harness.reopen()
    assert.deepEqual(await valuesOf(cut, cut.partition('a', 0)), ['written, never synced'])
  } finally {
    await harness.close()
  }
})

test('a file begins when the last one is full; a missing or shortened one is refused', async () => {
  const harness = embeddedHarness({ maxFileBytes: 600 })
  try {
    const log = await openTopics(harness)
    const lane = await log.lane('l')
    const values = Array.from({ length: 30 }, (_, i) => `value ${i}`)
    for (const value of values) await commitValues(lane, log.partition('a', 0), value)
    await commitValues(lane, log.partition('a', 0), 'x'.repeat(2000))
    await log.close()
    const names = journalNames(harness.dir())
    assert.ok(names.length > 4)
    assert.equal(names[0], firstFile)
    let base = 0
    for (const name of names) {
      assert.equal(Number(name.slice(0, 20)), base)
      base += readFileSync(join(harness.dir(), name)).length
    }
    const again = await harness.reopen((bytes) => bytes)
    assert.deepEqual(await valuesOf(again, again.partition('a', 0)), [...values, 'x'.repeat(2000)])
    await again.close()

    const dir = harness.dir()
    const clock = createVirtualClock(0)
    const second = readFileSync(join(dir, names[1]!))
    writeFileSync(join(dir, names[1]!), second.subarray(0, second.length - 1))
    await assert.rejects(openEmbeddedLog({ dir, clock }), { code: 'journal-broken', message: new RegExp(names[1]!) })
    rmSync(join(dir, names[1]!))
    await assert.rejects(openEmbeddedLog({ dir, clock }), { code: 'journal-broken', message: new RegExp(firstFile) })
  } finally {
    await harness.close()
  }
})

test('nothing is visible before it is durable, and commits of one moment share a sync', async () => {
  let syncs = 0
  const io: JournalIo = {
    ...nodeIo,
    datasync(fd, done) {
      syncs++
      nodeIo.datasync(fd, done)
    },
  }
  const harness = embeddedHarness({ io })
  try {
    const log = await openTopics(harness)
    const to = log.partition('a', 0)
    const lanes = await Promise.all(Array.from({ length: 20 }, (_, n) => log.lane(`l${n}`)))
    const reader = await log.lane('reader')
    reader.assign(new Map([[log.input('g', 'a', 0), 0]]))
    syncs = 0
    const commits = lanes.map((lane, n) => commitValues(lane, to, `${n}`))
    assert.deepEqual(reader.poll(1000, 0), [])
    assert.deepEqual([lanes[0]!.ends(to).stable, lanes[0]!.ends(to).high], [0, 20])
    assert.equal((await log.read(to, 0, 1000, 'high'))?.count, 1)
    await Promise.all(commits)
    assert.equal(lanes[0]!.ends(to).stable, 20)
    assert.equal(syncs, 1)
  } finally {
    await harness.close()
  }
})

test('a full disk aborts the commit, whole, and the log goes on when there is room', async () => {
  let room = Number.POSITIVE_INFINITY
  const io: JournalIo = {
    ...nodeIo,
    write(fd, buffer, offset, length, position) {
      if (room <= 0) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
      const written = nodeIo.write(fd, buffer, offset, Math.min(length, room), position)
      room -= written
      return written
    },
  }
  const harness = embeddedHarness({ io })
  try {
    const log = await openTopics(harness)
    const to = log.partition('a', 0)
    const lane = await log.lane('l')
    await commitValues(lane, to, 'before')
    for (const bytes of [0, 1, 40, 100]) {
      room = bytes
      const unit = lane.begin('atomic')
      append(unit, to, 'too much for this disk'.repeat(10))
      const outcome = await unit.commit([offsets('g', toolEpoch, [log.input('g', 'a', 0), 9])])
      assert.ok(outcome.kind === 'aborted' && /no space/.test(outcome.error.message))
    }
    room = 30
    const stage = lane.begin('idempotent')
    append(stage, to, 'refused')
    await assert.rejects(async () => await stage.flush(), { code: 'write-failed' })
    room = Number.POSITIVE_INFINITY
    append(stage, to, 'after a gap')
    await assert.rejects(async () => await stage.flush(), { code: 'write-failed' }, 'a unit never skips a flush')
    assert.equal((await stage.commit([])).kind, 'aborted')
    await commitValues(lane, to, 'after')
    assert.deepEqual(await valuesOf(log, to), ['before', 'after'])
    assert.equal((await log.positions('g', [to])).size, 0)
    const again = await harness.reopen()
    assert.equal(again.recovery.droppedBytes, 0)
    assert.deepEqual(await valuesOf(again, again.partition('a', 0)), ['before', 'after'])
  } finally {
    await harness.close()
  }
})

test('a disk that cannot take back what is half written is fatal, for this commit and all later ones', async () => {
  let fails = false
  const io: JournalIo = {
    ...nodeIo,
    write(fd, buffer, offset, length, position) {
      if (fails) throw new Error('i/o error')
      return nodeIo.write(fd, buffer, offset, length, position)
    },
    truncate(fd, length) {
      if (fails) throw new Error('i/o error')
      nodeIo.truncate(fd, length)
    },
  }
  const harness = embeddedHarness({ io })
  try {
    const log = await openTopics(harness)
    const lane = await log.lane('l')
    await commitValues(lane, log.partition('a', 0), 'before')
    fails = true
    for (let i = 0; i < 2; i++) {
      const unit = lane.begin('atomic')
      append(unit, log.partition('a', 0), 'lost')
      assert.equal((await unit.commit([])).kind, 'fatal')
      fails = false
    }
    const again = await harness.reopen()
    assert.deepEqual(await valuesOf(again, again.partition('a', 0)), ['before'])
  } finally {
    await harness.close()
  }
})

test('a sync that fails is fatal: nothing of it is ever visible, and a later sync proves nothing', async () => {
  let fails = false
  const io: JournalIo = {
    ...nodeIo,
    datasync(fd, done) {
      if (fails) setImmediate(done, new Error('i/o error'))
      else nodeIo.datasync(fd, done)
    },
  }
  const harness = embeddedHarness({ io })
  try {
    const log = await openTopics(harness)
    const to = log.partition('a', 0)
    const lane = await log.lane('l')
    await commitValues(lane, to, 'before')
    fails = true
    const unit = lane.begin('atomic')
    append(unit, to, 'unknown')
    assert.equal((await unit.commit([])).kind, 'fatal')
    fails = false
    const later = lane.begin('atomic')
    append(later, to, 'later')
    assert.equal((await later.commit([])).kind, 'fatal')
    assert.deepEqual(await valuesOf(log, to), ['before'])
    assert.equal(lane.ends(to).stable, 1)
  } finally {
    await harness.close()
  }
})
