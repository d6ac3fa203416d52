/** The response to a client that sends bytes that are not HTTP. */
import { connect } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { startServer } from '#runtime/http-server.ts';

it('a malformed request behind one that is being answered ends the connection, and adds nothing to that answer', async () => {
  let finish = () => {};
  const { url, stop } = await startServer({
    handler(_request, response) {
      response.setHeader('Content-Length', 20);
      response.write('1234567890');
      finish = () => response.end('1234567890');
    },
    host: '127.0.0.1',
    port: 0,
    bounds: {
      maxConnections: 10,
      minBytesPerSecond: 1,
      responseDeadlineMs: 60_000,
      onCut: () => {},
      onConnectionRefused: () => {},
    },
  });
  onTestFinished(stop);
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  onTestFinished(() => void socket.destroy());
  let received = '';
  socket.on('error', () => {});
  socket.setEncoding('utf8').on('data', (part: string) => {
    received += part;
  });
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await expect.poll(() => received).toMatch(/1234567890$/);

  socket.write('this is no HTTP\r\n\r\n');

  await new Promise((resolve) => socket.once('close', resolve));
  finish();
  expect(received).toMatch(/\r\n\r\n1234567890$/);
});
