import { isUtf8 } from 'node:buffer'

/**
 * Guesses the encoding of a body that does not declare one: UTF-8 if it is valid, else by the shape of its high bytes
 * in the first 64 KiB, else windows-1252, which is what browsers fall back to for most locales.
 *
 * Letters of western European text stand alone or in pairs among ASCII letters; Cyrillic words are runs of bytes above
 * 0xC0; East Asian text must decode without error and holds the characters that each language cannot do without.
 */
export function guessEncoding(body: Buffer): string {
  if (isUtf8(body)) return 'utf-8'
  const sample = body.subarray(0, sampleBytes)
  // A sample that ends inside a character is still UTF-8.
  if (sample.length < body.length && isUtf8Prefix(sample)) return 'utf-8'
  const runs = highRuns(sample)
  if (runs.mean < minRunBytes) return 'windows-1252'
  for (const { name, common } of eastAsian) if (commonShare(sample, name, common) >= minCommonShare) return name
  return runs.cyrillicShare > 0.9 ? 'windows-1251' : 'windows-1252'
}

const sampleBytes = 64 * 1024
const minRunBytes = 2.5
const minCommonShare = 0.05

/** Per encoding, characters that its language uses all the time and that the others' bytes rarely decode to. */
const eastAsian: readonly { name: string; common: RegExp }[] = [
  { name: 'shift_jis', common: /[のにはをがたとでし]/gu },
  { name: 'euc-jp', common: /[のにはをがたとでし]/gu },
  { name: 'gbk', common: /[的一是不了在人有我他这中大来国]/gu },
  { name: 'big5', common: /[的一是不了在人有我他這中大來國]/gu },
  { name: 'euc-kr', common: /[이다는에의을가고하지로한를은]/gu },
]

function commonShare(sample: Buffer, encoding: string, common: RegExp): number {
  // `stream` lets the sample end inside a character.
  let text: string
  try {
    text = new TextDecoder(encoding, { fatal: true }).decode(sample, { stream: true })
  } catch {
    return 0
  }
  const wide = text.match(/[^\0-\x7f]/gu)?.length ?? 0
  return wide === 0 ? 0 : (text.match(common)?.length ?? 0) / wide
}

function highRuns(sample: Buffer): { mean: number; cyrillicShare: number } {
  let runs = 0
  let high = 0
  let cyrillic = 0
  let inRun = false
  for (let i = 0; i < sample.length; i++) {
    const byte = sample[i]!
    if (byte >= 0x80) {
      high++
      if (byte >= 0xc0 || byte === 0xa8 || byte === 0xb8) cyrillic++
      if (!inRun) runs++
    }
    inRun = byte >= 0x80
  }
  return runs === 0 ? { mean: 0, cyrillicShare: 0 } : { mean: high / runs, cyrillicShare: cyrillic / high }
}

function isUtf8Prefix(sample: Buffer): boolean {
  for (let cut = 1; cut <= 3; cut++) if (isUtf8(sample.subarray(0, sample.length - cut))) return true
  return false
}
