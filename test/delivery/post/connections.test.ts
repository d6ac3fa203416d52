/** Each post has a connection of its own, with a full TLS handshake. */
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import type { TLSSocket } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { addressBlocks } from '#runtime/settings/types.ts';
import { makeCertificate } from '#test/certificates.ts';
import { post, postUntilStatus, startRawServer, startSocketServer } from './raw-server.ts';

const authority = makeCertificate({ subject: 'Test Authority', isAuthority: true });
const certificate = makeCertificate({ subject: 'receiver', names: ['hooks.example.com'], issuer: authority });
const accepted = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';
const rejected = 'HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n';
const resolve = async () => ({ ok: true as const, addresses: ['127.0.0.1'] });

describe('a post', () => {
  it('never takes a late second response to the post before for its own', async () => {
    let posts = 0;
    const server = await startRawServer((socket) => {
      posts += 1;
      if (posts % 2 === 0) return void socket.write(rejected);
      socket.write(accepted);
      setTimeout(() => socket.write(accepted), 40);
    });
    const url = `http://127.0.0.1:${server.port}/`;
    for (let nth = 0; nth < 3; nth += 1) {
      expect(await post(url)).toMatchObject({ status: 200 });
      await wait(60); // the second response is on its way
      expect(await post(url)).toMatchObject({ status: 500 });
    }
    expect(server.connections).toBe(6);
  });

  it('is made once at a receiver that resets a connection at its second request', async () => {
    const server = await startSocketServer((socket: Socket) => {
      let requests = 0;
      socket.on('data', () => {
        requests += 1;
        if (requests > 1) socket.resetAndDestroy();
        else socket.write(accepted);
      });
    });
    for (let nth = 1; nth <= 10; nth += 1) {
      expect(await post(`http://127.0.0.1:${server.port}/`)).toMatchObject({ outcome: 'delivered' });
      expect(server.connections).toBe(nth);
    }
  });

  it('reaches the healthy address at once after a failover of the receiver’s name', async () => {
    let isDead = false;
    const old = await startRawServer((socket) => void (isDead || socket.write(accepted)));
    const next = createServer((socket) => socket.once('data', () => socket.end(accepted)));
    next.listen(old.port, '127.0.0.2');
    await once(next, 'listening');
    onTestFinished(() => void next.close());
    const send = (address: string) =>
      post(`http://hooks.example.com:${old.port}/`, {
        deadlineMs: 5_000,
        allow: addressBlocks.parse('127.0.0.0/8'),
        resolve: async () => ({ ok: true, addresses: [address] }),
      });
    expect(await send('127.0.0.1')).toMatchObject({ outcome: 'delivered' });
    isDead = true; // its connections stay open
    expect(await send('127.0.0.2')).toMatchObject({ outcome: 'delivered', peerAddress: '127.0.0.2' });
  });

  it('is known with the status line, and keeps what arrives within a second of a body that never ends', async () => {
    let answering: Socket | undefined;
    const server = await startRawServer((socket) => {
      answering = socket;
      socket.write('HTTP/1.1 200 OK\r\n');
    });
    const result = await postUntilStatus(`http://127.0.0.1:${server.port}/`, { deadlineMs: 60_000 });
    expect(result).toMatchObject({ outcome: 'delivered', status: 200, body: { length: 0 } });
    answering?.write('\r\nbeginning'); // only now
    expect((await result.rest)?.body.toString()).toBe('beginning');
  });

  it('is known with the head when Retry-After counts', async () => {
    const server = await startRawServer((socket) => {
      socket.write('HTTP/1.1 429 Slow down\r\n');
      setTimeout(() => socket.write('retry-after: 7\r\n\r\nand no end'), 20);
    });
    const result = await postUntilStatus(`http://127.0.0.1:${server.port}/`);
    expect(result).toMatchObject({ status: 429, retryAfterSeconds: 7, rest: expect.any(Promise) });
  });

  it('needs no second look when the response is whole', async () => {
    const server = await startRawServer((socket) => void socket.write(accepted));
    expect(await postUntilStatus(`http://127.0.0.1:${server.port}/`)).toMatchObject({ status: 200, rest: null });
  });

  it.each([
    ['a bare LF', 'HTTP/1.1 200 OK\ncontent-length: 0\n\n'],
    ['two spaces', 'HTTP/1.1  200 OK\r\ncontent-length: 0\r\n\r\n'],
    ['no reason', 'HTTP/1.1 204\r\n\r\n'],
  ])('is delivered by a status line with %s, as browsers read it', async (_what, sent) => {
    const server = await startRawServer((socket) => void socket.end(sent));
    expect(await post(`http://127.0.0.1:${server.port}/`)).toMatchObject({ outcome: 'delivered' });
  });
});

describe('a TLS session', () => {
  // As servers do that ask for an optional client certificate without a session id context, and
  // front ends that reset the sessions of others.
  it.each(['TLSv1.2', 'TLSv1.3'] as const)('that its receiver rejects costs no event over %s', async (version) => {
    const handshakes = await startTlsReceiver(version);
    for (let nth = 1; nth <= 3; nth += 1) {
      const sent = post(`https://hooks.example.com:${handshakes.port}/`, { resolve, ca: authority.cert });
      expect(await sent).toMatchObject({ outcome: 'delivered' });
    }
    expect(handshakes.resumed).toEqual([false, false, false]);
  });

  it.each(['TLSv1.2', 'TLSv1.3'] as const)('never replaces the check of a certificate over %s', async (version) => {
    const { port } = await startTlsReceiver(version);
    const send = (host: string) => post(`https://${host}:${port}/`, { resolve, ca: authority.cert });
    expect(await send('hooks.example.com')).toMatchObject({ outcome: 'delivered' });
    expect(await send('other.example.com')).toMatchObject({ outcome: 'failed', cause: 'tls_wrong_host' });
    const unknown = post(`https://hooks.example.com:${port}/`, { resolve });
    expect(await unknown).toMatchObject({ outcome: 'failed', cause: 'tls_unknown_authority' });
  });
});

/** A receiver that offers sessions and closes each connection that resumes one. */
async function startTlsReceiver(version: 'TLSv1.2' | 'TLSv1.3') {
  const resumed: boolean[] = [];
  const { cert, key } = certificate;
  const server = await startRawServer(
    (socket) => {
      const isReused = (socket as TLSSocket).isSessionReused();
      resumed.push(isReused);
      if (isReused) socket.destroy();
      else socket.end(accepted);
    },
    { cert, key, minVersion: version, maxVersion: version },
  );
  return { port: server.port, resumed };
}
