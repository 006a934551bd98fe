/** What the parser knows of a tag, as bits. */
export const tagBits = {
  /** Its attributes are wanted. */
  attributes: 1,
  /** Its content is raw text up to its own end tag. */
  raw: 2,
  /** Starts and ends a block of text. */
  block: 4,
  /** Kept on the stack of open elements: an end tag of one closes what was left open inside it. */
  container: 8,
  /** Its text is never main text. */
  dropped: 16,
  /** As a start tag it ends an svg or math element (HTML, 13.2.6.5). */
  breakout: 32,
} as const

const a = tagBits.attributes
const r = tagBits.raw
const b = tagBits.block
const c = tagBits.container
const d = tagBits.dropped
const x = tagBits.breakout

const bits: { readonly [name: string]: number } = {
  a: a,
  area: a,
  base: a,
  frame: a,
  html: a,
  link: a,
  meta: a | x,
  iframe: a | r,
  title: r,
  script: r,
  style: r,
  textarea: r,
  xmp: r,
  noembed: r,
  noframes: r,
  plaintext: r,
  template: a | c | d,
  noscript: c | d,
  nav: b | c | d | x,
  header: b | c | d | x,
  footer: b | c | d | x,
  aside: b | c | d,
  form: b | c | d,
  menu: b | c | d | x,
  dialog: b | c | d,
  select: c | d,
  button: c | d,
  svg: c | d,
  math: c,
  head: x,
  body: b | c | x,
  main: b | c,
  article: b | c,
  section: b | c,
  div: b | c | x,
  td: b,
  th: b,
  ul: b | c | x,
  ol: b | c | x,
  table: b | c | x,
  blockquote: b | c | x,
  figure: b | c,
  figcaption: b | c,
  details: b,
  summary: b,
  p: b | x,
  li: b | x,
  dl: b | x,
  dt: b | x,
  dd: b | x,
  tr: b,
  tbody: b,
  thead: b,
  tfoot: b,
  caption: b,
  h1: b | x,
  h2: b | x,
  h3: b | x,
  h4: b | x,
  h5: b | x,
  h6: b | x,
  pre: b | x,
  br: b | x,
  hr: b | x,
  address: b,
  fieldset: b,
  legend: b,
  center: b | x,
  option: b,
}

const attributes = [
  'href',
  'src',
  'rel',
  'name',
  'content',
  'http-equiv',
  'property',
  'lang',
  'xml:lang',
  'hreflang',
  'media',
  'type',
  'shadowrootmode',
]

/** Names by id; 0 is "not known". */
export const tagNames: readonly string[] = ['', ...Object.keys(bits)]
export const attributeNames: readonly string[] = ['', ...attributes]
/** Bits by id. */
export const bitsOf: Uint8Array = Uint8Array.from(tagNames, (name) => bits[name] ?? 0)

export function tagId(name: string): number {
  return Math.max(0, tagNames.indexOf(name))
}

export function attributeId(name: string): number {
  return Math.max(0, attributeNames.indexOf(name))
}

/**
 * A perfect look-up of a fixed set of lower-case ASCII names by their bytes: `hash` is `nameHash` over the lower-cased
 * bytes, which the scanner computes while it looks for the name's end; a hit is then compared byte by byte.
 */
export interface NameTable {
  readonly slots: Uint8Array
  readonly hashes: Int32Array
  readonly bytes: Uint8Array
  readonly lengths: Uint8Array
}

export const slotMask = 511
export const maxNameBytes = 16

export function createNameTable(names: readonly string[]): NameTable {
  const slots = new Uint8Array(slotMask + 1)
  const hashes = new Int32Array(slotMask + 1)
  const bytes = new Uint8Array(names.length * maxNameBytes)
  const lengths = Uint8Array.from(names, (name) => name.length)
  names.forEach((name, id) => {
    if (id === 0) return
    const encoded = Buffer.from(name, 'latin1')
    bytes.set(encoded, id * maxNameBytes)
    const hash = nameHash(encoded)
    let slot = (hash ^ (hash >>> 9)) & slotMask
    while (slots[slot] !== 0) slot = (slot + 1) & slotMask
    slots[slot] = id
    hashes[slot] = hash
  })
  return { slots, hashes, bytes, lengths }
}

/** The id of bytes[start..end), any case, whose hash is known; 0 if it is not in the table. */
export function lookUp(table: NameTable, hash: number, bytes: Uint8Array, start: number, end: number): number {
  const { slots, hashes } = table
  let slot = (hash ^ (hash >>> 9)) & slotMask
  for (let id = slots[slot]!; id !== 0; id = slots[slot]!) {
    if (hashes[slot] === hash && equals(table, id, bytes, start, end)) return id
    slot = (slot + 1) & slotMask
  }
  return 0
}

function equals(table: NameTable, id: number, bytes: Uint8Array, start: number, end: number): boolean {
  const length = table.lengths[id]!
  if (end - start !== length) return false
  const at = id * maxNameBytes
  for (let i = 0; i < length; i++) {
    const byte = bytes[start + i]!
    if ((byte >= 65 && byte <= 90 ? byte | 32 : byte) !== table.bytes[at + i]) return false
  }
  return true
}

function nameHash(lower: Uint8Array): number {
  let hash = 0
  for (const byte of lower) hash = (Math.imul(hash, 31) + byte) | 0
  return hash
}
