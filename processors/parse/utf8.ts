/** The code point at `bytes[i]`, where a character of well-formed UTF-8 starts. */
export function codePointAt(bytes: Uint8Array, i: number): number {
  const lead = bytes[i]!
  if (lead < 0x80) return lead
  const second = bytes[i + 1]! & 0x3f
  if (lead < 0xe0) return ((lead & 0x1f) << 6) | second
  const third = bytes[i + 2]! & 0x3f
  if (lead < 0xf0) return ((lead & 0x0f) << 12) | (second << 6) | third
  return ((lead & 0x07) << 18) | (second << 12) | (third << 6) | (bytes[i + 3]! & 0x3f)
}

/** Bytes of the character that starts with `lead`. */
export function sizeOf(lead: number): number {
  return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4
}

/** Writes a UTF-16 unit that is no surrogate as UTF-8 and returns where it ends. */
export function writeUnit(bytes: Uint8Array, at: number, unit: number): number {
  let w = at
  if (unit < 0x80) bytes[w++] = unit
  else {
    if (unit < 0x800) bytes[w++] = 0xc0 | (unit >>> 6)
    else {
      bytes[w++] = 0xe0 | (unit >>> 12)
      bytes[w++] = 0x80 | ((unit >>> 6) & 0x3f)
    }
    bytes[w++] = 0x80 | (unit & 0x3f)
  }
  return w
}
