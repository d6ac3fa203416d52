import type { Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import type { TLSSocket } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { makeCertificate } from '#test/certificates.ts';
import { keepOn, post, startRawServer, startSocketServer } from './raw-server.ts';

/** Short, because most of these receivers never end by themselves. */
const deadlineMs = 400;
const head = 'HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n';

/** Sends one attempt to a receiver that handles each request as given. */
async function postTo(onRequest: (socket: Socket) => void, options: Parameters<typeof post>[1] = { deadlineMs }) {
  const server = await startRawServer(onRequest);
  return post(`http://127.0.0.1:${server.port}/`, options);
}

describe('a 2xx status line in time is delivered when', () => {
  const delivered = { outcome: 'delivered', status: 200, cause: 'accepted' };

  it.each<[string, (socket: Socket) => void]>([
    ['the headers never end', (s) => s.write('HTTP/1.1 200 OK\r\nx-a: 1')],
    ['it names HTTP/2.0 and the body never ends', (s) => s.write('HTTP/2.0 200 OK\r\ncontent-length: 9\r\n\r\nx')],
    ['an empty line precedes it and the body never ends', (s) => s.write(`\r\n${head}x`)],
    [
      'the headers trickle',
      (s) => {
        s.write('HTTP/1.1 200 OK\r\n');
        keepOn(s, 20, () => s.write('x'));
      },
    ],
    ['the connection closes in the headers', (s) => s.end('HTTP/1.1 200 OK\r\nx-a: 1')],
    [
      'the connection is reset in the headers',
      (s) => s.write('HTTP/1.1 200 OK\r\nx-a: 1', () => setTimeout(() => s.resetAndDestroy(), 20)),
    ],
    ['a header is malformed', (s) => s.end('HTTP/1.1 200 OK\r\nno colon here\r\n\r\n')],
    ['a header is larger than is read', (s) => s.end(`HTTP/1.1 200 OK\r\nx-a: ${'a'.repeat(1_000_000)}\r\n\r\n`)],
    ['there are a hundred thousand headers', (s) => s.end(`HTTP/1.1 200 OK\r\n${'x-a: b\r\n'.repeat(100_000)}\r\n`)],
    [
      'headers come without end',
      (s) => {
        s.write('HTTP/1.1 200 OK\r\n');
        keepOn(s, 1, () => s.write('x-a: b\r\n'.repeat(100)));
      },
    ],
    [
      'its lengths contradict each other',
      (s) => s.end('HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab'),
    ],
    [
      'it has a length and chunks',
      (s) => s.end('HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n'),
    ],
    ['its length is nonsense', (s) => s.end('HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\n')],
    ['its length overflows', (s) => s.end('HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999999\r\n\r\n')],
    ['the body is missing', (s) => s.write(head)],
    ['the body is shorter than it said', (s) => s.end(`${head}short`)],
    ['the body is longer than it said', (s) => s.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nmuch more')],
    [
      'the body trickles',
      (s) => {
        s.write(head);
        keepOn(s, 20, () => s.write('x'));
      },
    ],
    ['a chunk is malformed', (s) => s.end('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n')],
    [
      'a chunk’s extension never ends',
      (s) => {
        s.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;a=');
        keepOn(s, 1, () => s.write('x'.repeat(1000)));
      },
    ],
    [
      'trailers come without end',
      (s) => {
        s.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n');
        keepOn(s, 1, () => s.write('x-a: b\r\n'.repeat(100)));
      },
    ],
    [
      'the connection is reset in the body',
      (s) => s.write(`${head}some`, () => setTimeout(() => s.resetAndDestroy(), 20)),
    ],
    [
      'more than one response comes',
      (s) => s.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nHTTP/1.1 500 No\r\n\r\n'),
    ],
    [
      'the status line came in pieces',
      (s) => {
        const line = [...'HTTP/1.1 200 OK\r\n\r\n'];
        keepOn(s, 5, () => (line.length > 0 ? s.write(line.shift() ?? '') : s.end()));
      },
    ],
  ])('%s', async (_name, onRequest) => {
    // In time: these receivers answer at once, and a busy machine may need a while.
    expect(await postTo(onRequest, {})).toMatchObject(delivered);
  });

  it('the body never ends: 16 KiB are kept and the connection is closed', async () => {
    const result = await postTo(
      (s) => {
        s.write('HTTP/1.1 200 OK\r\n\r\n');
        keepOn(s, 1, () => s.write(Buffer.alloc(4096, 'x')));
      },
      { deadlineMs: 10_000 },
    );
    expect(result).toMatchObject({ ...delivered, body: { length: 16_384 } });
  });

  it('the body trickles: what arrived within a second is kept', async () => {
    const result = await postTo((s) => {
      s.write(head);
      keepOn(s, 20, () => s.write('x'));
    });
    expect(result.body.toString()).toMatch(/^x{1,60}$/);
  });

  it('the response arrives before the request was read', async () => {
    const server = await startSocketServer((s) => s.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'));
    expect(await post(`http://127.0.0.1:${server.port}/`, { deadlineMs })).toMatchObject(delivered);
  });
});

describe('an attempt has failed when', () => {
  const failed = (cause: string) => ({
    outcome: 'failed',
    status: null,
    cause,
    retryAfterSeconds: null,
  });

  it.each<[string, string, (socket: Socket) => void]>([
    ['the receiver is silent', 'response_timeout', () => {}],
    [
      'the status line trickles',
      'response_timeout',
      (s) => {
        s.write('HTTP/1.1 200 O');
        keepOn(s, 20, () => s.write('K'));
      },
    ],
    ['the status line lacks its end', 'response_timeout', (s) => s.write('HTTP/1.1 200 OK')],
    [
      'only interim responses come',
      'response_timeout',
      (s) => keepOn(s, 1, () => s.write('HTTP/1.1 103 Early Hints\r\nx: 1\r\n\r\n')),
    ],
    [
      'the interim response never ends',
      'response_timeout',
      (s) => s.write('HTTP/1.1 100 Continue\r\nx: HTTP/1.1 200 OK\r\n'),
    ],
    ['the connection closes without a response', 'response_missing', (s) => s.end()],
    ['the connection closes in the status line', 'response_missing', (s) => s.end('HTTP/1.1 200')],
    [
      'the connection closes after an interim response',
      'response_missing',
      (s) => s.end('HTTP/1.1 100 Continue\r\n\r\n'),
    ],
    ['the connection is reset', 'response_missing', (s) => s.resetAndDestroy()],
    ['the response is another protocol', 'response_not_http', (s) => s.end('SSH-2.0-OpenSSH_9.9\r\n')],
    ['the response is HTML alone', 'response_not_http', (s) => s.end('<html>200 OK</html>\r\n\r\n')],
    ['the response is HTTP/2', 'response_not_http', (s) => s.end(Buffer.from('00000404000000000000', 'hex'))],
    ['the response claims HTTP/9.9', 'response_not_http', (s) => s.end('HTTP/9.9 200 OK\r\n\r\n')],
    ['it names http/1.1 in lower case', 'response_not_http', (s) => s.end('http/1.1 200 OK\r\n\r\n')],
    ['the status is no number', 'response_not_http', (s) => s.end('HTTP/1.1 2OO OK\r\n\r\n')],
    ['the status has two digits', 'response_not_http', (s) => s.end('HTTP/1.1 20 OK\r\n\r\n')],
    [
      'the status line never ends',
      'response_not_http',
      (s) => {
        s.write('HTTP/1.1 200 ');
        keepOn(s, 1, () => s.write('x'.repeat(1000)));
      },
    ],
    ['noise comes', 'response_not_http', (s) => s.end(Buffer.alloc(100_000, 0xff))],
  ])('%s: %s', async (_name, cause, onRequest) => {
    expect(await postTo(onRequest)).toMatchObject({ ...failed(cause), peerAddress: '127.0.0.1', body: { length: 0 } });
  });

  it('nothing listens', async () => {
    expect(await post('http://127.0.0.1:1/')).toMatchObject({ ...failed('connection_refused'), peerAddress: null });
  });

  it('the receiver accepts and reads nothing', async () => {
    const server = await startSocketServer((s) => s.pause());
    const body = Buffer.alloc(16 * 1024 * 1024);
    expect(await post(`http://127.0.0.1:${server.port}/`, { deadlineMs, body })).toMatchObject(
      failed('response_timeout'),
    );
  });
});

it('what a look-up takes is no time of the receiver', async () => {
  const server = await startRawServer((s) => s.end(head));
  const slowLookUp = async () => {
    await wait(2_200);
    return { ok: true as const, addresses: ['127.0.0.1'] };
  };
  const result = await post(`http://hooks.example.com:${server.port}/`, { deadlineMs: 2_000, resolve: slowLookUp });
  expect(result).toMatchObject({ outcome: 'delivered' });
});

/** More than the buffers of both sockets have, and less than comes within a second. */
const mostSent = 16 * 1024 * 1024;

describe('what a receiver sends without end is read up to a bound, and the connection is closed:', () => {
  const chunked = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';

  it.each<[string, string, string, string]>([
    ['interim responses', '', 'HTTP/1.1 103 Early Hints\r\n\r\n', 'response_not_http'],
    ['interim responses with headers', '', `HTTP/1.1 103 x\r\n${'x: y\r\n'.repeat(100)}\r\n`, 'response_not_http'],
    ['interim responses of HTTP/2.0', '', 'HTTP/2.0 103 x\r\n\r\n', 'response_not_http'],
    ['headers of an interim response', 'HTTP/1.1 100 Continue\r\n', 'x: y\r\n', 'response_not_http'],
    ['empty lines', '', '\r\n', 'response_not_http'],
    ['line feeds', '', '\n', 'response_not_http'],
    ['a status line', 'HTTP/1.1 200 ', 'x', 'response_not_http'],
    ['headers', 'HTTP/1.1 200 OK\r\n', 'x: y\r\n', 'accepted'],
    ['headers of a 429', 'HTTP/1.1 429 Slow down\r\n', 'x: y\r\n', 'answered_too_many'],
    ['a body', 'HTTP/1.1 200 OK\r\n\r\n', 'x', 'accepted'],
    ['a chunk’s size', chunked, '0', 'accepted'],
    ['a chunk’s extension', `${chunked}1;a=`, 'x', 'accepted'],
    ['chunks of one byte with extensions', chunked, `1;a=${'b'.repeat(16_000)}\r\nx\r\n`, 'accepted'],
    ['trailers', `${chunked}0\r\n`, 'x: y\r\n', 'accepted'],
    ['what follows a response', 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n', 'HTTP/1.1 200 OK\r\n\r\n', 'accepted'],
  ])('%s', async (_what, beginning, repeated, cause) => {
    const piece = Buffer.from(repeated.repeat(Math.ceil(65_536 / repeated.length)));
    let sent = 0;
    const flood = (socket: Socket) => {
      socket.write(beginning);
      const pump = () => {
        if (socket.destroyed || sent > mostSent) return;
        sent += piece.length;
        socket.write(piece, () => setImmediate(pump));
      };
      pump();
    };
    const result = await postTo(flood, {});
    expect(result.cause).toBe(cause);
    expect(sent).toBeLessThan(mostSent);
  });

  it('renegotiations of TLS 1.2, of which the response has no byte', async () => {
    const { cert, key } = makeCertificate({ subject: 'receiver', names: ['127.0.0.1'] });
    const server = await startRawServer(
      (socket) => {
        socket.removeAllListeners('error').on('error', () => {}); // node:tls reports the attack, and continues
        const renegotiate = () => void (socket.destroyed || (socket as TLSSocket).renegotiate({}, renegotiate));
        renegotiate();
      },
      { cert, key, maxVersion: 'TLSv1.2' },
    );
    const result = await post(`https://127.0.0.1:${server.port}/`, { ca: cert });
    expect(result).toMatchObject({ outcome: 'failed', cause: 'response_missing' });
  });

  it('requests of a handshake in the handshake, of which no socket has an event', async () => {
    const requests = Buffer.concat([Buffer.from([22, 3, 3, 0x40, 0]), Buffer.alloc(16_384)]);
    const server = await startSocketServer((socket) => {
      const flood = () => void (socket.destroyed || socket.write(requests, () => setImmediate(flood)));
      socket.once('data', flood);
    });
    const result = await post(`https://127.0.0.1:${server.port}/`, {});
    expect(result).toMatchObject({ outcome: 'failed', cause: 'tls_closed' });
    expect(result.timingsMs.total).toBeLessThan(5_000);
  });
});

describe('the real limit of 10 s', () => {
  it('ends an attempt at a silent receiver, and accepts a response after 9 s', {
    concurrent: true,
  }, async () => {
    const silent = await startRawServer(() => {});
    const slow = await startRawServer((s) => void setTimeout(() => s.end('HTTP/1.1 204 No Content\r\n\r\n'), 9_000));
    const [silence, lateness] = await Promise.all([
      post(`http://127.0.0.1:${silent.port}/`),
      post(`http://127.0.0.1:${slow.port}/`),
    ]);
    expect(silence).toMatchObject({ outcome: 'failed', cause: 'response_timeout' });
    expect(silence.timingsMs.total).toBeGreaterThanOrEqual(10_000);
    expect(lateness).toMatchObject({ outcome: 'delivered', status: 204 });
    expect(lateness.timingsMs.firstByte).toBeGreaterThanOrEqual(8_990);
  });
});

describe('a late event loop', () => {
  it('does not turn a response in time into a timeout', async () => {
    const { Worker } = await import('node:worker_threads');
    // The receiver runs in a separate thread, so it answers while this thread is blocked.
    const worker = new Worker(
      `const { parentPort } = require('node:worker_threads');
       const server = require('node:net').createServer((s) => s.once('data', () => {
         parentPort.postMessage('asked');
         setTimeout(() => s.end('HTTP/1.1 200 OK\\r\\n\\r\\n'), 50);
       }));
       server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));`,
      { eval: true },
    );
    try {
      const port = await new Promise((done) => worker.once('message', done));
      worker.once('message', () => {
        const until = performance.now() + 600; // past the deadline, while the response waits in the socket
        while (performance.now() < until);
      });
      expect(await post(`http://127.0.0.1:${port}/`, { deadlineMs })).toMatchObject({
        outcome: 'delivered',
        status: 200,
      });
    } finally {
      await worker.terminate();
    }
  });
});
