import type { Socket } from 'node:net';
import type { TlsOptions } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { makeCertificate, type TestCertificate } from '#test/certificates.ts';
import { post, startRawServer, startSocketServer } from './raw-server.ts';

const authority = makeCertificate({ subject: 'Test Authority', isAuthority: true });
const names = ['hooks.example.com', '127.0.0.1'];
const good = makeCertificate({ subject: 'receiver', names, issuer: authority });
const accept = (socket: Socket) => void socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
const toLoopback = async () => ({ ok: true as const, addresses: ['127.0.0.1'] });

/** Posts over TLS to a receiver with these settings, at `host`. */
async function postTo(
  tls: TlsOptions,
  { host = '127.0.0.1', ca = authority.cert as string | null, nowMs = Date.now() } = {},
) {
  const server = await startRawServer(accept, tls);
  const result = await post(`https://${host}:${server.port}/`, {
    resolve: toLoopback,
    deadlineMs: 2_000,
    nowMs,
    ...(ca === null ? {} : { ca }),
  });
  return { result, server };
}

const pem = ({ cert, key }: TestCertificate) => ({ cert, key });
const signed = (wanted: Partial<Parameters<typeof makeCertificate>[0]>) =>
  pem(makeCertificate({ subject: 'receiver', names, issuer: authority, ...wanted }));

describe('TLS', () => {
  it.each(['127.0.0.1', 'hooks.example.com'])('is verified for %s, and its duration is reported', async (host) => {
    const { result } = await postTo(pem(good), { host });
    expect(result).toMatchObject({ outcome: 'delivered', status: 200, peerAddress: '127.0.0.1' });
    expect(result.timingsMs.tls).toEqual(expect.any(Number));
  });

  it('sends the host of the URL to a receiver that serves several', async () => {
    const other = makeCertificate({ subject: 'other', names: ['other.example.com'], issuer: authority });
    const server = await startRawServer(accept, {
      ...pem(other),
      SNICallback: async (name, done) => {
        const { createSecureContext } = await import('node:tls');
        done(null, createSecureContext(pem(name === 'hooks.example.com' ? good : other)));
      },
    });
    const url = `https://hooks.example.com:${server.port}/`;
    expect(await post(url, { resolve: toLoopback, ca: authority.cert })).toMatchObject({ outcome: 'delivered' });
  });

  it.each(['TLSv1.2', 'TLSv1.3'] as const)('works over %s', async (version) => {
    const { result } = await postTo({ ...pem(good), minVersion: version, maxVersion: version });
    expect(result).toMatchObject({ outcome: 'delivered' });
  });

  it.each<[string, string, TlsOptions]>([
    ['has expired', 'tls_expired', signed({ fromDay: -30, toDay: -1 })],
    ['is not valid yet', 'tls_not_yet_valid', signed({ fromDay: 1, toDay: 30 })],
    ['names another host', 'tls_wrong_host', signed({ names: ['other.example.com'] })],
    ['names no host but in its common name', 'tls_wrong_host', signed({ subject: '127.0.0.1', names: [] })],
    ['is signed by itself', 'tls_self_signed', pem(makeCertificate({ subject: 'receiver', names }))],
    [
      'is of an unknown authority',
      'tls_unknown_authority',
      signed({ issuer: makeCertificate({ subject: 'Nobody', isAuthority: true }) }),
    ],
    [
      'is of an authority that only pretends to be the known one',
      'tls_certificate_unfit',
      signed({ issuer: makeCertificate({ subject: authority.subject, isAuthority: true }) }),
    ],
    [
      'lacks its intermediate',
      'tls_unknown_authority',
      signed({ issuer: makeCertificate({ subject: 'Between', isAuthority: true, issuer: authority }) }),
    ],
    ['is signed by one that may not sign', 'tls_certificate_unfit', byLeaf()],
  ])('fails when the certificate %s: %s', async (_name, cause, tls) => {
    const { result, server } = await postTo(tls);
    expect(result).toMatchObject({ outcome: 'failed', status: null, cause });
    expect(result.timingsMs).toMatchObject({ connect: expect.any(Number), tls: null, firstByte: null });
    expect(server.requests).toEqual([]); // nothing of the event was sent
  });

  it.each([
    ['has expired', 'tls_expired', { fromDay: -30, toDay: -1 }],
    ['is not valid yet', 'tls_not_yet_valid', { fromDay: 1, toDay: 30 }],
  ])(
    'of a worker whose clock PostgreSQL contradicts says nothing about a certificate that %s',
    async (_what, cause, days) => {
      const tls = signed(days);
      for (const offMs of [-2 * 86_400_000, -120_000, 120_000]) {
        const { result, server } = await postTo(tls, { nowMs: Date.now() + offMs });
        expect(result).toMatchObject({ outcome: 'internal_error', cause: 'clock_wrong' });
        expect(server.requests).toEqual([]);
      }
      const agreeing = await postTo(tls, { nowMs: Date.now() - 5_000 });
      expect(agreeing.result).toMatchObject({ outcome: 'failed', cause });
    },
  );

  it('trusts no test authority by itself', async () => {
    const { result } = await postTo(pem(good), { ca: null });
    expect(result).toMatchObject({ outcome: 'failed', cause: 'tls_unknown_authority' });
  });

  it('is verified even where Node’s own switch turns that off', async () => {
    const { NODE_TLS_REJECT_UNAUTHORIZED: before } = process.env;
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
    try {
      const { result } = await postTo(pem(makeCertificate({ subject: 'receiver', names })));
      expect(result).toMatchObject({ outcome: 'failed', cause: 'tls_self_signed' });
    } finally {
      if (before === undefined) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
      else process.env.NODE_TLS_REJECT_UNAUTHORIZED = before;
    }
  });

  it('fails when the receiver offers nothing newer than TLS 1.1', async () => {
    const { result } = await postTo({
      ...pem(good),
      minVersion: 'TLSv1',
      maxVersion: 'TLSv1.1',
      ciphers: 'DEFAULT@SECLEVEL=0',
    });
    expect(result).toMatchObject({ outcome: 'failed', cause: 'tls_protocol_too_old' });
  });

  it.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'fails when the receiver asks for a client certificate over %s',
    async (version) => {
      const { result } = await postTo({
        ...pem(good),
        requestCert: true,
        ca: authority.cert,
        minVersion: version,
        maxVersion: version,
      });
      expect(result.outcome).toBe('failed');
      // With TLS 1.3 the request is sent before the alert, and a reset may arrive first.
      const possible = ['tls_client_certificate', ...(version === 'TLSv1.3' ? ['response_missing'] : [])];
      expect(possible).toContain(result.cause);
    },
  );

  it('fails without a common cipher over TLS 1.2, which is no missing client certificate', async () => {
    const ciphers = 'ECDHE-RSA-AES128-GCM-SHA256'; // the certificate's key is not RSA
    const { result } = await postTo({ ...pem(good), requestCert: true, ciphers, maxVersion: 'TLSv1.2' });
    expect(result).toMatchObject({ outcome: 'failed', cause: 'tls_failed' });
  });

  it('fails when the receiver supports HTTP/2 only', async () => {
    const { result } = await postTo({ ...pem(good), ALPNProtocols: ['h2'] });
    expect(result).toMatchObject({ outcome: 'failed', cause: 'tls_no_http1' });
  });

  it.each<[string, string, (socket: Socket) => void]>([
    [
      'speaks plain HTTP',
      'tls_not_spoken',
      (s) => void s.once('data', () => s.end('HTTP/1.1 400 Bad Request\r\n\r\n')),
    ],
    ['speaks another protocol', 'tls_not_spoken', (s) => void s.write('220 mail.example.com ESMTP\r\n')],
    ['hangs in the handshake', 'tls_timeout', () => {}],
    ['trickles the handshake', 'tls_timeout', (s) => void s.write(Buffer.from('160303', 'hex'))],
    ['closes in the handshake', 'tls_closed', (s) => void s.once('data', () => s.end())],
    ['resets in the handshake', 'tls_closed', (s) => void s.once('data', () => s.resetAndDestroy())],
  ])('fails when the receiver %s: %s', async (_name, cause, onConnect) => {
    const server = await startSocketServer(onConnect);
    const result = await post(`https://127.0.0.1:${server.port}/`, { ca: authority.cert, deadlineMs: 400 });
    expect(result).toMatchObject({
      outcome: 'failed',
      status: null,
      cause,
      peerAddress: '127.0.0.1',
    });
  });
});

function byLeaf(): TlsOptions {
  const leaf = makeCertificate({ subject: 'Leaf', names, issuer: authority });
  const forged = makeCertificate({ subject: 'receiver', names, issuer: leaf });
  return { key: forged.key, cert: forged.cert + leaf.cert };
}
