import { createServer } from 'node:http';
import { text as readText } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { listenLocally } from '#test/listen-locally.ts';
import { request } from '../../apps/receiver/http.ts';

// A receiver on the JDK's server closes without announcing it. Posts over a connection that Node had kept were reset,
// so certify failed a correct receiver, each time in another scenario.
it('opens a connection for each post, and announces that it closes it', async () => {
  const announced: (string | undefined)[] = [];
  let connections = 0;
  const server = createServer((received, response) => {
    announced.push(received.headers.connection);
    received.resume().on('end', () => response.setHeader('Connection', 'keep-alive').end('kept'));
  });
  server.on('connection', () => {
    connections += 1;
  });
  const target = { url: `http://127.0.0.1:${await listenLocally(server)}`, ca: null };
  for (let number = 1; number <= 3; number += 1) {
    const response = await request(target, {
      headers: ['X-Number', `${number}`],
      body: Buffer.from('{}'),
      timeoutMs: 10_000,
    });
    expect(await readText(response)).toBe('kept');
  }
  expect(connections).toBe(3);
  expect(announced).toEqual(['close', 'close', 'close']);
});
