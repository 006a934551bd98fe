import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import https from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { TLSSocket } from 'node:tls'
import { createSystemClock } from '../../../connectors/clock/system.ts'
import { createUndiciClient } from '../../../connectors/http/undici.ts'
import { asFailure, asResponse, request } from '../../suites/http.ts'
import { exchange, listen } from './servers.ts'

const certificate = makeCertificate('secure.localhost')
const skip = certificate === null ? 'openssl is not installed: no certificate to test with' : false

describe('undici: TLS', { skip }, () => {
  const serve = async (body: (port: number, names: unknown[], resumed: boolean[]) => Promise<void>) => {
    const names: unknown[] = []
    const resumed: boolean[] = []
    const server = https.createServer({ key: certificate!.key, cert: certificate!.cert }, (_req, res) => res.end('ok'))
    server.on('secureConnection', (socket: TLSSocket) => {
      names.push(socket.servername)
      resumed.push(socket.isSessionReused())
    })
    const { port, close } = await listen(server)
    try {
      await body(port, names, resumed)
    } finally {
      await close()
    }
  }
  const newClient = (ca?: string) =>
    createUndiciClient({ clock: createSystemClock(), allowPrivate: true, ...(ca === undefined ? {} : { ca }) })

  test("the certificate is checked for the URL's host, whatever the address; the session is resumed", async () => {
    await serve(async (port, names, resumed) => {
      const client = newClient(certificate!.cert)
      const asked = request(`https://secure.localhost:${port}/`, '127.0.0.1', { headers: [['connection', 'close']] })
      for (let i = 0; i < 2; i++) asResponse(await exchange(client, asked))
      assert.deepEqual(names, ['secure.localhost', 'secure.localhost'])
      assert.deepEqual(resumed, [false, true])
      await client.close()
    })
  })

  test('another name, an address, an unknown issuer: tls, nothing written', async () => {
    await serve(async (port) => {
      for (const [host, ca] of [
        ['other.localhost', certificate!.cert],
        ['127.0.0.1', certificate!.cert],
        ['secure.localhost', undefined],
      ] as const) {
        const client = newClient(ca)
        const failed = asFailure(await exchange(client, request(`https://${host}:${port}/`, '127.0.0.1')))
        assert.deepEqual([failed.error, failed.written], ['tls', false], `${host}: ${failed.message}`)
        await client.close()
      }
    })
  })
})

function makeCertificate(name: string): { key: string; cert: string } | null {
  const directory = mkdtempSync(join(tmpdir(), 'weir-tls-'))
  try {
    const key = join(directory, 'key.pem')
    const cert = join(directory, 'cert.pem')
    const { status } = spawnSync('openssl', [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'],
      ...['-subj', `/CN=${name}`, '-addext', `subjectAltName=DNS:${name}`, '-keyout', key, '-out', cert],
    ])
    return status === 0 ? { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') } : null
  } finally {
    rmSync(directory, { recursive: true })
  }
}
