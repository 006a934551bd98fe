import { createRandom, type Random } from './random.ts'

/** Words by rank: English function words first, so that a language guesser sees English, then made-up nouns. */
const functionWords =
  'the of and to in a is that for it as was with be by on not he this are or his from at which but have an had they you were their one all we can her has there been if more when will would who so no out up into about than them only some could time these two may then do first any my now such like our over new even most after also made many before must through years where much your way well down should because each just those people how too little state good very make world still own see men work long here get both between life being under never day same another know while last might us great old year off come since against go came right used take three'.split(
    ' ',
  )
const accented = ['café', 'naïve', 'façade', 'señor', 'über', 'crème', 'élan', 'smörgåsbord']
const vocabulary = buildVocabulary(4_000)
/** A word each as often as 1/rank wants it, so that a draw is one look-up. */
const byFrequency = Array.from(
  { length: 8_192 },
  (_, i) => ` ${vocabulary[Math.floor(Math.exp((i / 8_192) * Math.log(vocabulary.length))) - 1]}`,
)
/** Nouns for paths and titles: plain ASCII, no function words. */
const nouns = vocabulary.slice(functionWords.length + accented.length, functionWords.length + 1_200)

/** A made-up noun in lower-case ASCII. */
export function noun(random: Random): string {
  return random.pick(nouns)
}

/** `count` capitalized words. */
export function titleWords(random: Random, count: number): string {
  return Array.from({ length: count }, () => capitalize(noun(random))).join(' ')
}

/**
 * Paragraphs of about `bytes` characters, each between `open` and `close`. Word frequencies fall like 1/rank, and a
 * third of the words come from a small set of the text's own, so that two texts differ in what they are about.
 * Every `editEvery`-th word from the twentieth on (0 = none) is replaced: a near-duplicate of the text that the same generator gives without.
 */
export function paragraphs(random: Random, bytes: number, editEvery: number, open: string, close: string): string {
  const topic = random.int(nouns.length)
  const own = Array.from({ length: 40 }, (_, i) => ` ${nouns[(topic + i * 7) % nouns.length]}`)
  let out = ''
  let words = 0
  while (out.length < bytes) {
    out += open
    const sentences = 3 + random.int(5)
    for (let s = 0; s < sentences && out.length < bytes; s++) {
      const length = 6 + random.int(14)
      for (let w = 0; w < length; w++) {
        const u = random.next() * 1.5
        let word = u < 1 ? byFrequency[Math.floor(u * 8_192)]! : own[Math.floor((u - 1) * (u - 1) * 160)]!
        words++
        if (editEvery > 0 && words % editEvery === 20 % editEvery) word = ` ${nouns[(topic + words) % nouns.length]}`
        out += w === 0 ? ` ${capitalize(word.slice(1))}` : word
      }
      out += '.'
    }
    out += close
  }
  return out
}

function capitalize(word: string): string {
  return word[0]!.toUpperCase() + word.slice(1)
}

function buildVocabulary(size: number): string[] {
  const random = createRandom('vocabulary')
  const onsets = [
    'b',
    'br',
    'c',
    'ch',
    'd',
    'dr',
    'f',
    'g',
    'gl',
    'h',
    'k',
    'l',
    'm',
    'n',
    'p',
    'pl',
    'r',
    's',
    'st',
    't',
  ]
  const vowels = ['a', 'e', 'i', 'o', 'u', 'ea', 'ou', 'ai']
  const codas = ['', 'n', 'r', 's', 't', 'l', 'nd', 'rk', 'm']
  const words = new Set([...functionWords, ...accented])
  while (words.size < size) {
    const syllables = 2 + random.int(2)
    let word = ''
    for (let i = 0; i < syllables; i++) word += random.pick(onsets) + random.pick(vowels)
    words.add(word + random.pick(codas))
  }
  return [...words]
}
