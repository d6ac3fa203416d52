import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { startRawServer } from './raw-server.ts';

const run = promisify(execFile);
const child = path.join(import.meta.dirname, 'post-child.ts');

/** Posts once in a separate process and prints outcome and memory. */
async function postInChild(mode: 'plain' | 'without-descriptors', url: string) {
  const limited = mode === 'without-descriptors' ? ['-c', 'ulimit -n 64; exec "$0" "$@"'] : ['-c', 'exec "$0" "$@"'];
  const { stdout } = await run('/bin/sh', [...limited, process.execPath, child, mode, url]);
  return JSON.parse(stdout) as {
    outcome: string;
    cause: string;
    keptBytes: number;
    grownBytes: number;
  };
}

describe('a worker process', () => {
  it('that cannot open another connection reports an internal error', async () => {
    const server = await startRawServer((socket) => socket.end('HTTP/1.1 200 OK\r\n\r\n'));
    const result = await postInChild('without-descriptors', `http://127.0.0.1:${server.port}/`);
    expect(result).toMatchObject({ outcome: 'internal_error', cause: 'sockets_exhausted' });
  });

  it('uses bounded memory when a receiver answers with 1 GB', async () => {
    const piece = Buffer.alloc(1024 * 1024, 'x');
    let sent = 0;
    const server = await startRawServer((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${1024 * piece.length}\r\n\r\n`);
      const pump = () => {
        while (sent < 1024 && !socket.destroyed) {
          sent += 1;
          if (!socket.write(piece)) return void socket.once('drain', pump);
        }
      };
      pump();
    });
    const result = await postInChild('plain', `http://127.0.0.1:${server.port}/`);
    expect(result).toMatchObject({ outcome: 'delivered', keptBytes: 16_384 });
    expect(result.grownBytes).toBeLessThan(32 * 1024 * 1024);
    expect(sent).toBeLessThan(64); // the connection was closed long before the end
  });

  it('uses bounded memory when a receiver sends headers without end', async () => {
    const flood = Buffer.from('x-flood: 0123456789012345678901234567890123456789\r\n'.repeat(20_000));
    const server = await startRawServer((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n');
      const pump = () => {
        while (!socket.destroyed) if (!socket.write(flood)) return void socket.once('drain', pump);
      };
      pump();
    });
    const result = await postInChild('plain', `http://127.0.0.1:${server.port}/`);
    expect(result).toMatchObject({ outcome: 'delivered', keptBytes: 0 });
    expect(result.grownBytes).toBeLessThan(32 * 1024 * 1024);
  });
});
