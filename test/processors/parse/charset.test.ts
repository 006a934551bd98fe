import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sniffCharset, toUtf8 } from '../../../processors/parse/charset.ts'
import { encodingOf } from '../../../processors/parse/encodings.ts'
import { lacks, suiteFile } from './suite.ts'

const russian = 'Съешь же ещё этих мягких французских булок, да выпей чаю. Широкая электрификация южных губерний.'

/** Single-byte encoding by trying every byte, so that tests need no encoder. */
function encode(text: string, charset: string): Buffer {
  const decoder = new TextDecoder(charset)
  const table = new Map<string, number>()
  for (let byte = 255; byte >= 0; byte--) table.set(decoder.decode(Uint8Array.of(byte)), byte)
  return Buffer.from(Array.from(text, (char) => table.get(char) ?? 63))
}

function charsetOf(body: Buffer | string, contentType: string | null = 'text/html'): string {
  const charset = sniffCharset(Buffer.from(body as string), contentType)
  return `${charset.name} by ${charset.from}`
}

test('C1: byte order mark, then header, then meta, then guess', () => {
  const meta = encode(`<html><head><meta charset="windows-1251"><title>${russian}</title>`, 'windows-1251')
  assert.equal(charsetOf(meta), 'windows-1251 by meta')
  assert.equal(toUtf8(meta, sniffCharset(meta, 'text/html')).includes(russian), true)
  assert.equal(charsetOf(meta, 'text/html; charset=koi8-r'), 'koi8-r by header')
  const marked = Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from('<p>é')])
  assert.equal(charsetOf(marked, 'text/html; charset=iso-8859-1'), 'utf-8 by bom')
  assert.equal(toUtf8(marked, sniffCharset(marked, null)).toString(), '<p>é')
  assert.equal(charsetOf('<p>é'), 'utf-8 by guess')
  assert.equal(charsetOf(Buffer.from('<p>caf\xe9 au lait', 'latin1')), 'windows-1252 by guess')
})

test('C1: labels that name no encoding fall through', () => {
  assert.equal(charsetOf('<meta charset=koi8-r>', 'text/html; charset=klingon'), 'koi8-r by meta')
  assert.equal(charsetOf('<meta charset=klingon>é', 'text/html; charset='), 'utf-8 by guess')
  assert.equal(charsetOf('<meta charset=hz-gb-2312>é'), 'utf-8 by guess')
  assert.equal(charsetOf('é', 'text/html; charset="UTF-8"'), 'utf-8 by header')
  assert.equal(encodingOf('constructor'), undefined)
  assert.equal(encodingOf(' LATIN1 '), 'windows-1252')
})

test('a declaration past the first 1,024 bytes is not looked at', () => {
  assert.equal(charsetOf(`${' '.repeat(990)}<meta charset=koi8-r>`), 'koi8-r by meta')
  assert.equal(charsetOf(`${' '.repeat(1_020)}<meta charset=koi8-r>`), 'utf-8 by guess')
})

test('UTF-16 is decoded; a meta element that claims it is not believed', () => {
  const body = Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from('<p>zażółć', 'utf16le')])
  assert.equal(charsetOf(body), 'utf-16le by bom')
  assert.equal(toUtf8(body, sniffCharset(body, null)).toString(), '<p>zażółć')
  assert.equal(charsetOf('<meta charset=utf-16>'), 'utf-8 by meta')
})

test('undeclared encodings are guessed by the shape of their bytes', () => {
  assert.equal(charsetOf(encode(`<p>${russian}</p>`, 'windows-1251')), 'windows-1251 by guess')
  const japanese = Buffer.from(
    '82b182cc83798381815b83578dcd93fa967b8cea82c582b781428ae08e9a82c682d082e782aa82c882aa8da682b682c182c482a282dc82b78142',
    'hex',
  )
  assert.equal(charsetOf(japanese), 'shift_jis by guess')
  assert.equal(
    charsetOf(Buffer.from('Der Käse für die Gäste: süß, größer, schöner', 'latin1')),
    'windows-1252 by guess',
  )
})

test('encoding sniffing agrees with html5lib', { skip: lacks('html5lib/encoding') }, () => {
  const cases = suiteFile('html5lib/encoding/tests1.dat').toString('latin1').split('#data\n').slice(1)
  let checked = 0
  for (const item of cases) {
    const [data, expected] = item.split('\n#encoding\n')
    // Some parsers look further than the standard's 1,024 bytes.
    if (data!.indexOf('charset') > 1_024) continue
    const label = expected!.trim().split('\n')[0]!
    const charset = sniffCharset(Buffer.from(data!, 'latin1'), 'text/html')
    // The suite's fallback is windows-1252; ASCII that declares nothing is UTF-8 here, which decodes the same.
    const name = charset.from === 'guess' && charset.name === 'utf-8' ? 'windows-1252' : charset.name
    assert.equal(name, encodingOf(label), `${JSON.stringify(data)} is ${label}`)
    checked++
  }
  assert.ok(checked > 50)
})
