/**
 * Where a time or an all-digit date that starts at `from` ends, or 0 if there is none: `9:05`, `23:59:59.123`,
 * `2024-05-01`, `1.5.2024`, `05/01/24`, `2024-05-01T12:30:00Z`, `2024-05-01 12:30`. `bytes` are lower- or upper-case
 * ASCII; a letter or digit right after means that it is something else.
 */
export function timeOrDateEnd(bytes: Uint8Array, from: number, to: number): number {
  const first = digitsEnd(bytes, from, to)
  if (first - from > 4 || first >= to) return 0
  const by = bytes[first]!
  if (by === colon) return timeEnd(bytes, from, to)
  if (by !== dash && by !== dot && by !== slash) return 0
  const second = digitsEnd(bytes, first + 1, to)
  if (second - first - 1 < 1 || second - first - 1 > 2 || bytes[second] !== by || second >= to) return 0
  const third = digitsEnd(bytes, second + 1, to)
  const yearFirst = first - from === 4
  const lastDigits = third - second - 1
  if (yearFirst ? lastDigits < 1 || lastDigits > 2 : first - from > 2 || (lastDigits !== 2 && lastDigits !== 4))
    return 0
  if (third < to && (bytes[third]! | 32) === letterT) return timeEnd(bytes, third + 1, to)
  if (third < to && bytes[third] === space) {
    const time = timeEnd(bytes, third + 1, to)
    if (time > 0) return time
  }
  // A fourth group makes it an address or a version.
  if (third + 1 < to && bytes[third] === by && isDigit(bytes[third + 1]!)) return 0
  return endsClean(bytes, third, to)
}

const colon = 58
const dash = 45
const dot = 46
const slash = 47
const space = 32
const letterT = 116
const letterZ = 122

function timeEnd(bytes: Uint8Array, from: number, to: number): number {
  const hours = digitsEnd(bytes, from, to)
  if (hours === from || hours - from > 2 || hours >= to || bytes[hours] !== colon) return 0
  let end = digitsEnd(bytes, hours + 1, to)
  if (end - hours - 1 !== 2) return 0
  if (end < to && bytes[end] === colon) {
    const seconds = digitsEnd(bytes, end + 1, to)
    if (seconds - end - 1 !== 2) return 0
    end = seconds
    if (end + 1 < to && bytes[end] === dot && isDigit(bytes[end + 1]!)) end = digitsEnd(bytes, end + 1, to)
  }
  if (end < to && (bytes[end]! | 32) === letterZ) return endsClean(bytes, end + 1, to)
  if (end < to && (bytes[end] === 43 || bytes[end] === dash)) {
    const offset = digitsEnd(bytes, end + 1, to)
    if (offset - end - 1 === 4) return endsClean(bytes, offset, to)
    if (offset - end - 1 === 2 && bytes[offset] === colon) {
      const minutes = digitsEnd(bytes, offset + 1, to)
      if (minutes - offset - 1 === 2) return endsClean(bytes, minutes, to)
    }
  }
  return endsClean(bytes, end, to)
}

function endsClean(bytes: Uint8Array, end: number, to: number): number {
  if (end >= to) return end
  const next = bytes[end]!
  const lower = next | 32
  return isDigit(next) || (lower >= 97 && lower <= 122) ? 0 : end
}

/** Looks at five digits at most: no part of a date is longer. */
function digitsEnd(bytes: Uint8Array, from: number, to: number): number {
  const last = Math.min(to, from + 5)
  let i = from
  while (i < last && isDigit(bytes[i]!)) i++
  return i
}

function isDigit(byte: number): boolean {
  return byte >= 48 && byte <= 57
}
