import { readFileSync } from 'node:fs';
import { expect, onTestFinished } from 'vitest';
import type { ChildApp } from '#test/child-app.ts';
import { allowSockets } from '#test/socket-guard.ts';

const mebibyte = 1_048_576;

/** The settings with which a process can be asked for its memory. */
export const probed = { NODE_OPTIONS: '--inspect=127.0.0.1:0' };

/** Returns the most memory that a process has used so far, as the system counted it (MiB); Linux only. */
export const peakMiB = ({ process: { pid = 0 } }: ChildApp): number =>
  Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024;

/**
 * Connects to a process that runs with `probed`. Returns a function that collects its garbage, and
 * returns what is then used: objects and buffers (MiB). What the system counts for a process also
 * contains freed memory that it has not returned.
 */
export async function openMemoryProbe(app: ChildApp): Promise<() => Promise<number>> {
  const found = () => app.lines.map((line) => /ws:\/\/127\.0\.0\.1:\d+\/\S+/.exec(line)?.[0]).find(Boolean);
  await expect.poll(found, { timeout: 30_000 }).toBeDefined();
  const url = found() ?? '';
  allowSockets('test', url.replace('ws:', 'http:'));
  const socket = new WebSocket(url);
  onTestFinished(() => socket.close());
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve);
    socket.addEventListener('error', reject);
  });
  let lastId = 0;
  const call = (method: string, params = {}) =>
    new Promise<{ result?: { value?: number } }>((resolve) => {
      lastId += 1;
      const id = lastId;
      const onMessage = ({ data }: MessageEvent) => {
        const message = JSON.parse(String(data)) as { id?: number; result?: { result?: { value?: number } } };
        if (message.id !== id) return;
        socket.removeEventListener('message', onMessage);
        resolve(message.result ?? {});
      };
      socket.addEventListener('message', onMessage);
      socket.send(JSON.stringify({ id, method, params }));
    });
  return async () => {
    // Buffers are freed by the collection after the one that found their owners.
    for (let times = 0; times < 2; times += 1) await call('HeapProfiler.collectGarbage');
    const expression = '(({ heapUsed, external }) => heapUsed + external)(process.memoryUsage())';
    const { result } = await call('Runtime.evaluate', { expression, returnByValue: true });
    return (result?.value ?? expect.fail('the process did not say what it uses')) / mebibyte;
  };
}
