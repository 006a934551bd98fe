/**
 * Reads the little of protobuf's text format that the robots.txt cases use: fields `name: value`, messages `{}`, lists
 * `[]`, strings in adjacent pieces, comments.
 */
export type TextProto = { [field: string]: TextProtoValue }
export type TextProtoValue = Buffer | string | TextProto | TextProtoValue[]

export function parseTextProto(text: string): TextProto {
  let at = 0

  function skip(): void {
    for (;;) {
      while (at < text.length && /[\s,;]/.test(text[at]!)) at++
      if (text[at] !== '#') return
      while (at < text.length && text[at] !== '\n') at++
    }
  }
  function word(): string {
    const match = /^[A-Za-z0-9_.+-]+/.exec(text.slice(at, at + 100))
    if (match === null) throw new SyntaxError(`textproto: no word at ${at}: ${text.slice(at, at + 20)}`)
    at += match[0].length
    return match[0]
  }
  function piece(): Buffer {
    const quote = text[at++]!
    const bytes: Buffer[] = []
    while (text[at] !== quote) {
      if (at >= text.length) throw new SyntaxError('textproto: a string has no end')
      if (text[at] !== '\\') {
        const character = String.fromCodePoint(text.codePointAt(at)!)
        bytes.push(Buffer.from(character))
        at += character.length
        continue
      }
      const letter = text[at + 1]!
      const hex = /^x[0-9A-Fa-f]{1,2}/.exec(text.slice(at + 1, at + 4))
      const octal = /^[0-7]{1,3}/.exec(text.slice(at + 1, at + 4))
      if (hex !== null) {
        bytes.push(Buffer.from([Number.parseInt(hex[0].slice(1), 16)]))
        at += 1 + hex[0].length
      } else if (octal !== null) {
        bytes.push(Buffer.from([Number.parseInt(octal[0], 8)]))
        at += 1 + octal[0].length
      } else {
        const known: { [letter: string]: string } = { n: '\n', r: '\r', t: '\t' }
        bytes.push(Buffer.from(known[letter] ?? letter))
        at += 2
      }
    }
    at++
    return Buffer.concat(bytes)
  }
  function value(): TextProtoValue {
    skip()
    if (text[at] === '{') {
      at++
      return message('}')
    }
    if (text[at] === '[') {
      at++
      const list: TextProtoValue[] = []
      for (skip(); text[at] !== ']'; skip()) list.push(value())
      at++
      return list
    }
    if (text[at] !== '"' && text[at] !== "'") return word()
    const pieces: Buffer[] = []
    for (; text[at] === '"' || text[at] === "'"; skip()) pieces.push(piece())
    return Buffer.concat(pieces)
  }
  function message(end: string | undefined): TextProto {
    const fields: TextProto = {}
    for (skip(); text[at] !== end; skip()) {
      const name = word()
      skip()
      if (text[at] === ':') at++
      fields[name] = value()
    }
    at++
    return fields
  }
  return message(undefined)
}
