/**
 * What the token reader does with a character, by UTF-16 unit: its lower case where it is part of a word, else one of
 * these.
 */
export const separator = 0
/** Of a script written without spaces. */
export const unspaced = 1
/** Must be normalized together with what is around it first. */
export const compound = 2

/** ASCII alone, by byte: lower case, 0 for a separator, -1 for a byte of a longer character. */
export const foldAscii = Int8Array.from({ length: 256 }, (_, byte) => {
  if (byte >= 0x80) return -1
  const char = String.fromCharCode(byte)
  return /[0-9A-Za-z]/.test(char) ? char.toLowerCase().charCodeAt(0) : separator
})

/** Every UTF-16 unit in order, spaces for surrogates. */
const allUnits = Buffer.from(
  Uint16Array.from({ length: 0x10000 }, (_, unit) => (unit >= 0xd800 && unit < 0xe000 ? 32 : unit)).buffer,
).toString('utf16le')

const unspacedScripts =
  /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}\u3005\u30fc]+/gu

/** Three full stops in NFKC, which no date ends with; so frequent that it is worth an exception. */
const ellipsis = 0x2026

/** For text that is in NFKC and lower case already. Surrogates have no entry. */
export const foldNormal = createNormal()

/**
 * For any text: NFKC and lower case are in the table where they are a matter of the character alone, which saves most
 * texts the normalization (Unicode Standard Annex #15, 9, "Detecting Normalization Forms").
 */
export const foldAny = createAny(foldNormal)

function createNormal(): Uint16Array {
  const fold = new Uint16Array(0x10000)
  for (const [from, to] of runsOf(/[\p{L}\p{N}\p{M}]+/gu)) for (let unit = from; unit < to; unit++) fold[unit] = unit
  for (const [from, to] of runsOf(unspacedScripts)) fold.fill(unspaced, from, to)
  return fold
}

function createAny(normal: Uint16Array): Uint16Array {
  const fold = normal.slice()
  // Final sigma depends on its neighbours; marks and Hangul's inner letters may join the character before them.
  fold[0x03a3] = compound
  for (const [from, to] of runsOf(/\p{M}+/gu)) fold.fill(compound, from, to)
  fold.fill(compound, 0x1160, 0x1200)
  for (const [from, to] of runsOf(/[\p{CWKCF}\p{CWL}]+/gu)) {
    for (let unit = from; unit < to; unit++) {
      if (fold[unit] === compound) continue
      const char = String.fromCharCode(unit)
      const lower = char.toLowerCase()
      if (char.normalize('NFKC') !== char) fold[unit] = unit === ellipsis ? separator : compound
      else if (lower.length > 1) fold[unit] = compound
      else if (fold[unit] === unit) fold[unit] = lower.charCodeAt(0)
    }
  }
  return fold
}

/** Ranges of units, surrogates aside, that match. */
function* runsOf(pattern: RegExp): Generator<[from: number, to: number]> {
  for (const run of allUnits.matchAll(pattern)) yield [run.index, run.index + run[0].length]
}
