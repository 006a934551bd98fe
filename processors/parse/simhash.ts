/**
 * SimHash of 64 bits (Charikar, STOC 2002): bit k of the result is set where more than half of the features have it
 * set. A feature that occurs n times is given n times: its weight is its frequency.
 */
export interface SimHash {
  readonly high: number
  readonly low: number
}

/**
 * Features are the first `count` pairs of `high` and `low`, which are overwritten. Both have room for 7 more words than
 * `count`.
 */
export function simHash(high: Int32Array, low: Int32Array, count: number): SimHash {
  return { high: majority(high, count), low: majority(low, count) }
}

/** Planes for 2^30 features, three a round. */
const planes = new Int32Array(30)

/**
 * For each of 32 bits, whether more than half of the words have it. The 32 counters lie across: plane k holds bit k of
 * each, so that one addition counts 32 bits. Each round of `addUp` leaves an eighth of the words, of eight times the
 * weight.
 */
function majority(words: Int32Array, count: number): number {
  let top = 0
  for (let left = count; left > 0; top += 3) left = addUp(words, left, top)
  // Compare all 32 counters with half of the count, from the highest plane down.
  const half = count >>> 1
  let greater = 0
  let equal = -1
  for (let k = top - 1; k >= 0; k--) {
    const plane = planes[k]!
    const bit = -((half >>> k) & 1)
    greater |= equal & plane & ~bit
    equal &= ~(plane ^ bit)
  }
  return greater
}

/**
 * Adds the words up, eight at a time, with carry-save adders (Harley-Seal; Warren, "Hacker's Delight", 5-1). The sums'
 * three low planes go to `planes` from `plane` on; what is carried out of them is left in `words`, its number returned.
 */
function addUp(words: Int32Array, count: number, plane: number): number {
  words.fill(0, count, count + (-count & 7))
  let ones = 0
  let twos = 0
  let fours = 0
  let carries = 0
  for (let i = 0; i < count; i += 8) {
    let a = words[i]!
    let b = words[i + 1]!
    let half = ones ^ a
    const twosA = (ones & a) | (half & b)
    ones = half ^ b
    a = words[i + 2]!
    b = words[i + 3]!
    half = ones ^ a
    const twosB = (ones & a) | (half & b)
    ones = half ^ b
    half = twos ^ twosA
    const foursA = (twos & twosA) | (half & twosB)
    twos = half ^ twosB
    a = words[i + 4]!
    b = words[i + 5]!
    half = ones ^ a
    const twosC = (ones & a) | (half & b)
    ones = half ^ b
    a = words[i + 6]!
    b = words[i + 7]!
    half = ones ^ a
    const twosD = (ones & a) | (half & b)
    ones = half ^ b
    half = twos ^ twosC
    const foursB = (twos & twosC) | (half & twosD)
    twos = half ^ twosD
    half = fours ^ foursA
    words[carries++] = (fours & foursA) | (half & foursB)
    fours = half ^ foursB
  }
  planes[plane] = ones
  planes[plane + 1] = twos
  planes[plane + 2] = fours
  return count < 8 ? 0 : carries
}
