import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { until } from './until.ts';

/**
 * A Redis process for one test, empty at each start, that can be paused, killed and restarted on
 * the same port.
 */
export interface RedisServer {
  url: string;
  /** A connection for the test's direct commands. */
  look: Redis;
  /** Starts the server after `kill`; resolves when it answers. */
  start(): Promise<void>;
  /** Sends SIGKILL; resolves when the process has ended. */
  kill(): Promise<void>;
  /** Sends SIGSTOP: the kernel still accepts connections and bytes, and Redis does not answer. */
  pause(): void;
  /** Sends SIGCONT. */
  resume(): void;
  /** Stops the server and removes its folder. */
  stop(): Promise<void>;
}

/** Returns a free port of the loopback interface. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/**
 * Starts a Redis server; throws an error that names the remedy when redis-server is not installed.
 */
export async function startRedis(): Promise<RedisServer> {
  if (spawnSync('redis-server', ['--version']).error !== undefined) {
    throw new Error(
      'These tests need redis-server on the PATH, 7 or newer: install it (apt-get install ' +
        'redis-server) and run them again.',
    );
  }
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), 'org-api-redis-'));
  const url = `redis://127.0.0.1:${port}`;
  const look = new Redis(url, { lazyConnect: true, retryStrategy: () => 50, maxRetriesPerRequest: null });
  look.on('error', () => undefined); // the test kills it on purpose
  let child: ChildProcess | null = null;

  async function start(): Promise<void> {
    const settings = {
      port,
      bind: '127.0.0.1',
      dir: folder,
      save: '',
      appendonly: 'no',
      'maxmemory-policy': 'noeviction',
    };
    const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]);
    child = spawn('redis-server', args, { stdio: 'ignore' });
    if (look.status === 'wait') await look.connect().catch(() => undefined);
    await until('Redis answers', async () => look.status === 'ready' && (await look.ping()) === 'PONG');
  }

  async function kill(): Promise<void> {
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }

  await start();
  return {
    url,
    look,
    start,
    kill,
    pause: () => void child?.kill('SIGSTOP'),
    resume: () => void child?.kill('SIGCONT'),
    async stop() {
      look.disconnect();
      await kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
