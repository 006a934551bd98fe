/**
 * Where a time or an all-digit date that starts at `from` ends, or 0 if there is none: `9:05`, `23:59:59.123`,
 * `2024-05-01`, `1.5.2024`, `05/01/24`, `2024-05-01T12:30:00Z`, `2024-05-01 12:30`. `units` are lower- or upper-case
 * UTF-16; a letter or digit right after means that it is something else.
 */
export function timeOrDateEnd(units: Uint16Array, from: number, to: number): number {
  const first = digitsEnd(units, from, to)
  if (first - from > 4 || first >= to) return 0
  const by = units[first]!
  if (by === colon) return timeEnd(units, from, to)
  if (by !== dash && by !== dot && by !== slash) return 0
  const second = digitsEnd(units, first + 1, to)
  if (second - first - 1 < 1 || second - first - 1 > 2 || units[second] !== by || second >= to) return 0
  const third = digitsEnd(units, second + 1, to)
  const yearFirst = first - from === 4
  const lastDigits = third - second - 1
  if (yearFirst ? lastDigits < 1 || lastDigits > 2 : first - from > 2 || (lastDigits !== 2 && lastDigits !== 4))
    return 0
  if (third < to && (units[third]! | 32) === letterT) return timeEnd(units, third + 1, to)
  if (third < to && units[third] === space) {
    const time = timeEnd(units, third + 1, to)
    if (time > 0) return time
  }
  // A fourth group makes it an address or a version.
  if (third + 1 < to && units[third] === by && isDigit(units[third + 1]!)) return 0
  return endsClean(units, third, to)
}

const colon = 58
const dash = 45
const dot = 46
const slash = 47
const space = 32
const letterT = 116
const letterZ = 122

function timeEnd(units: Uint16Array, from: number, to: number): number {
  const hours = digitsEnd(units, from, to)
  if (hours === from || hours - from > 2 || hours >= to || units[hours] !== colon) return 0
  let end = digitsEnd(units, hours + 1, to)
  if (end - hours - 1 !== 2) return 0
  if (end < to && units[end] === colon) {
    const seconds = digitsEnd(units, end + 1, to)
    if (seconds - end - 1 !== 2) return 0
    end = seconds
    if (end + 1 < to && units[end] === dot && isDigit(units[end + 1]!)) end = digitsEnd(units, end + 1, to)
  }
  if (end < to && (units[end]! | 32) === letterZ) return endsClean(units, end + 1, to)
  if (end < to && (units[end] === 43 || units[end] === dash)) {
    const offset = digitsEnd(units, end + 1, to)
    if (offset - end - 1 === 4) return endsClean(units, offset, to)
    if (offset - end - 1 === 2 && units[offset] === colon) {
      const minutes = digitsEnd(units, offset + 1, to)
      if (minutes - offset - 1 === 2) return endsClean(units, minutes, to)
    }
  }
  return endsClean(units, end, to)
}

function endsClean(units: Uint16Array, end: number, to: number): number {
  if (end >= to) return end
  const next = units[end]!
  const lower = next | 32
  return isDigit(next) || (lower >= 97 && lower <= 122) ? 0 : end
}

/** Looks at five digits at most: no part of a date is longer. */
function digitsEnd(units: Uint16Array, from: number, to: number): number {
  const last = Math.min(to, from + 5)
  let i = from
  while (i < last && isDigit(units[i]!)) i++
  return i
}

function isDigit(unit: number): boolean {
  return unit >= 48 && unit <= 57
}
