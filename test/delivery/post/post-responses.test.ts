import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { post, startRawServer } from './raw-server.ts';

/** The complete response of a receiver, before it closes. */
async function answering(response: string | Buffer) {
  const server = await startRawServer((socket) => socket.end(response));
  return { server, url: `http://127.0.0.1:${server.port}/hook?token=s3cret` };
}

const empty = 'content-length: 0\r\n\r\n';

describe('the result of an attempt', () => {
  it.each(['200 OK', '201 Created', '202 Accepted', '204 No Content', '206 Partial', '226', '299 Whatever'])(
    'is delivered on %s',
    async (status) => {
      const { url } = await answering(`HTTP/1.1 ${status}\r\n${status.startsWith('204') ? '\r\n' : empty}`);
      expect(await post(url)).toMatchObject({
        outcome: 'delivered',
        status: Number(status.slice(0, 3)),
        cause: 'accepted',
        peerAddress: '127.0.0.1',
      });
    },
  );

  it.each([
    [101, 'answered_other'],
    [300, 'answered_redirect'],
    [301, 'answered_redirect'],
    [304, 'answered_redirect'],
    [308, 'answered_redirect'],
    [400, 'answered_client_error'],
    [401, 'answered_unauthorized'],
    [403, 'answered_unauthorized'],
    [404, 'answered_not_found'],
    [405, 'answered_method_not_allowed'],
    [410, 'answered_gone'],
    [413, 'answered_too_large'],
    [429, 'answered_too_many'],
    [499, 'answered_client_error'],
    [500, 'answered_server_error'],
    [503, 'answered_unavailable'],
    [599, 'answered_server_error'],
    [600, 'answered_other'],
    [999, 'answered_other'],
  ])('is failed on %i, as %s', async (status, cause) => {
    const { url } = await answering(`HTTP/1.1 ${status} x\r\n${empty}`);
    expect(await post(url)).toMatchObject({ outcome: 'failed', status, cause });
  });

  it.each([
    ['100 Continue', 'HTTP/1.1 100 Continue\r\n\r\n'],
    ['102 and 103', 'HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'],
  ])('is that of the final response after %s', async (_name, interim) => {
    const { url } = await answering(`${interim}HTTP/1.1 200 OK\r\n${empty}`);
    expect(await post(url)).toMatchObject({ outcome: 'delivered', status: 200 });
    const failing = await answering(`${interim}HTTP/1.1 500 No\r\n${empty}`);
    expect(await post(failing.url)).toMatchObject({ outcome: 'failed', status: 500 });
  });

  it('understands HTTP/1.0 and responses that end with the connection', async () => {
    const { url } = await answering('HTTP/1.0 200 OK\r\n\r\nthanks');
    const result = await post(url);
    expect(result).toMatchObject({ outcome: 'delivered', body: { length: 6 } });
    expect(result.body.toString()).toBe('thanks');
  });

  it('is failed on a redirect, which is not followed', async () => {
    const inside = await startRawServer((socket) => socket.end(`HTTP/1.1 200 OK\r\n${empty}`));
    for (const status of [301, 302, 303, 307, 308]) {
      const { server, url } = await answering(
        `HTTP/1.1 ${status} x\r\nlocation: http://127.0.0.1:${inside.port}/\r\nrefresh: 0;url=http://127.0.0.1:${inside.port}/\r\n${empty}`,
      );
      expect(await post(url)).toMatchObject({ outcome: 'failed', status, cause: 'answered_redirect' });
      expect(server.connections).toBe(1);
    }
    expect(inside.connections).toBe(0);
  });
});

describe('a post', () => {
  it('is one HTTP/1.1 request with the body’s bytes and exactly the documented headers', async () => {
    const { server, url } = await answering(`HTTP/1.1 200 OK\r\n${empty}`);
    const body = Buffer.from('{"name":"é"}');
    await post(url, { body, headers: { 'webhook-id': '7', Host: 'evil.example', 'content-length': '1' } });
    const [head, sent] = (server.requests[0] ?? '').split('\r\n\r\n');
    expect(Buffer.from(sent ?? '', 'latin1')).toEqual(body);
    expect(head?.split('\r\n').sort()).toEqual(
      [
        'POST /hook?token=s3cret HTTP/1.1',
        'webhook-id: 7',
        `host: 127.0.0.1:${server.port}`,
        `content-length: ${body.length}`,
        'connection: close',
      ].sort(),
    );
  });

  it('uses a new connection, also when the receiver would keep it open', async () => {
    const server = await startRawServer((socket) =>
      socket.write(`HTTP/1.1 200 OK\r\nconnection: keep-alive\r\n${empty}`),
    );
    const url = `http://127.0.0.1:${server.port}/`;
    expect(await post(url)).toMatchObject({ outcome: 'delivered' });
    expect(await post(url)).toMatchObject({ outcome: 'delivered' });
    expect(server.connections).toBe(2);
  });

  it('reports the duration of each completed phase', async () => {
    const { url } = await answering(`HTTP/1.1 200 OK\r\n${empty}`);
    const { timingsMs } = await post(url);
    expect(timingsMs).toEqual({
      dns: null,
      connect: expect.any(Number),
      tls: null,
      firstByte: expect.any(Number),
      total: expect.any(Number),
    });
    for (const ms of Object.values(timingsMs)) expect(ms === null || Number.isInteger(ms)).toBe(true);
  });

  it('is not sent to a rejected URL, and the explanation does not repeat the URL', async () => {
    const result = await post('https://10.0.0.1/hook?token=s3cret');
    expect(result).toMatchObject({
      outcome: 'failed',
      cause: 'address_not_public',
      status: null,
      peerAddress: null,
      body: { length: 0 },
    });
    expect(result.explanation).not.toMatch(/s3cret|10\.0/);
  });
});

describe('the kept response', () => {
  it('is the beginning of the body, chunked or not, up to the limit', async () => {
    const plain = await answering('HTTP/1.1 500 x\r\ncontent-length: 11\r\n\r\nhello world');
    expect((await post(plain.url)).body.toString()).toBe('hello world');
    const chunked = await answering(
      'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n',
    );
    expect((await post(chunked.url)).body.toString()).toBe('hello world');
    const cut = await post(plain.url, { keepBytes: 5 });
    expect(cut).toMatchObject({ status: 500, body: { length: 5 } });
    expect(cut.body.toString()).toBe('hello');
  });

  it('is at most 16 KiB, and the connection is closed there', async () => {
    const long = Buffer.alloc(200_000, 'x');
    const { url } = await answering(
      Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\ncontent-length: ${long.length}\r\n\r\n`), long]),
    );
    const result = await post(url);
    expect(result).toMatchObject({ outcome: 'delivered', body: { length: 16_384 } });
    expect(result.body.equals(long.subarray(0, 16_384))).toBe(true);
  });

  it('is never decompressed', async () => {
    const bomb = gzipSync(Buffer.alloc(8 * 1024 * 1024));
    const { server, url } = await answering(
      Buffer.concat([
        Buffer.from(`HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: ${bomb.length}\r\n\r\n`),
        bomb,
      ]),
    );
    const result = await post(url);
    expect(result.body.equals(bomb.subarray(0, 16_384))).toBe(true);
    expect(server.requests[0]).not.toMatch(/accept-encoding/i);
    expect(result.encoding).toBe('gzip');
  });

  it.each([
    ['content-encoding: GZip \r\n', 'gzip'],
    ['content-encoding: identity\r\n', null],
    ['', null],
    [`content-encoding: ${'x'.repeat(4_000)}\r\n`, 'x'.repeat(100)],
  ])('keeps the encoding that the receiver named: %j', async (header, encoding) => {
    const { url } = await answering(`HTTP/1.1 200 OK\r\n${header}${empty}`);
    expect(await post(url)).toMatchObject({ outcome: 'delivered', encoding });
  });
});

describe('Retry-After', () => {
  const nowMs = Date.parse('2026-01-01T00:00:00.001Z');

  it.each([
    [429, '120', 120],
    [503, '0', 0],
    [503, ' 7 ', 7],
    [429, '99999999999999999999999', 3_600],
    [503, 'Thu, 01 Jan 2026 00:02:00 GMT', 120],
    [503, 'Wed, 31 Dec 2025 23:00:00 GMT', 0],
    [503, 'Fri, 01 Jan 2999 00:00:00 GMT', 3_600],
    [503, 'Thursday, 01-Jan-26 00:02:00 GMT', 120],
    [503, 'Sunday, 06-Nov-94 08:49:37 GMT', 0],
    [429, 'Thu Jan  1 00:02:00 2026', 120],
    [429, 'Thu Jan 01 00:02:00 2026 GMT', null],
    [503, 'Thursday, 99-Jan-26 00:02:00 GMT', null],
    [429, '-1', null],
    [429, '1.5', null],
    [429, '1e3', null],
    [429, 'soon', null],
    [429, '', null],
    [429, '2026-01-01', null],
    [429, 'Thu, 99 Foo 2026 00:00:00 GMT', null],
    [500, '120', null],
    [200, '120', null],
    [301, '120', null],
  ])('of a %i with %j is read as %j', async (status, value, seconds) => {
    const { url } = await answering(`HTTP/1.1 ${status} x\r\nretry-after: ${value}\r\n${empty}`);
    expect((await post(url, { nowMs })).retryAfterSeconds).toBe(seconds);
  });
});
