/**
 * SimHash of 64 bits (Charikar, STOC 2002): bit k of the result is set where more than half of the features have it
 * set. A feature that occurs n times is given n times: its weight is its frequency.
 */
export interface SimHash {
  readonly high: number
  readonly low: number
}

/** Features are the first `count` pairs of `high` and `low`. */
export function simHash(high: Int32Array, low: Int32Array, count: number): SimHash {
  return { high: majority(high, count), low: majority(low, count) }
}

/** Enough planes for 2^25 features. */
const planeCount = 25
const planes = new Int32Array(planeCount + 1)

/**
 * For each of 32 bits, whether more than half of the words have it. The 32 counters lie across: plane k holds bit k of
 * each, so one addition counts 32 bits, and a carry-save adder over eight words touches the upper planes only once
 * (Harley-Seal; Warren, "Hacker's Delight", 5-1).
 */
function majority(words: Int32Array, count: number): number {
  planes.fill(0)
  let ones = 0
  let twos = 0
  let fours = 0
  const whole = count - (count % 8)
  let i = 0
  while (i < whole) {
    let a = words[i++]!
    let b = words[i++]!
    let half = ones ^ a
    const twosA = (ones & a) | (half & b)
    ones = half ^ b
    a = words[i++]!
    b = words[i++]!
    half = ones ^ a
    const twosB = (ones & a) | (half & b)
    ones = half ^ b
    half = twos ^ twosA
    const foursA = (twos & twosA) | (half & twosB)
    twos = half ^ twosB
    a = words[i++]!
    b = words[i++]!
    half = ones ^ a
    const twosC = (ones & a) | (half & b)
    ones = half ^ b
    a = words[i++]!
    b = words[i++]!
    half = ones ^ a
    const twosD = (ones & a) | (half & b)
    ones = half ^ b
    half = twos ^ twosC
    const foursB = (twos & twosC) | (half & twosD)
    twos = half ^ twosD
    half = fours ^ foursA
    add((fours & foursA) | (half & foursB), 3)
    fours = half ^ foursB
  }
  add(ones, 0)
  add(twos, 1)
  add(fours, 2)
  while (i < count) add(words[i++]!, 0)

  // Compare all 32 counters with half of the count, from the highest plane down.
  const half = count >>> 1
  let greater = 0
  let equal = -1
  for (let k = planeCount; k >= 0; k--) {
    const plane = planes[k]!
    const bit = -((half >>> k) & 1)
    greater |= equal & plane & ~bit
    equal &= ~(plane ^ bit)
  }
  return greater
}

function add(word: number, plane: number): void {
  let carry = word
  for (let k = plane; carry !== 0 && k <= planeCount; k++) {
    const before = planes[k]!
    planes[k] = before ^ carry
    carry &= before
  }
}
