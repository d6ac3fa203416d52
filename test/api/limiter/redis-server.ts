import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Redis } from 'ioredis';
import { getFreePort } from '../../../apps/dev/servers/ports.ts';
import { startRedis as startServer } from '../../../apps/dev/servers/redis.ts';

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

/** Starts a Redis server. @throws Error when there is none and none can be installed. */
export async function startRedis(): Promise<RedisServer> {
  const stateFolder = mkdtempSync(path.join(tmpdir(), 'org-api-redis-'));
  const port = await getFreePort();
  const launch = async () => {
    const server = await startServer({ stateFolder, port, report: () => {} });
    if (server === null) throw new Error('These tests need redis-server 7 or newer on the PATH.');
    return server;
  };
  let server = await launch();
  const { url } = server;
  const look = new Redis(url, { retryStrategy: () => 50, maxRetriesPerRequest: null });
  look.on('error', () => undefined); // the test kills it on purpose
  const isReady = () => (look.status === 'ready' ? undefined : once(look, 'ready'));
  const signal = (name: NodeJS.Signals) => void process.kill(server.pid, name);

  await isReady();
  return {
    url,
    look,
    async start() {
      server = await launch();
      await isReady();
    },
    async kill() {
      signal('SIGKILL');
      await server.exited;
    },
    pause: () => signal('SIGSTOP'),
    resume: () => signal('SIGCONT'),
    async stop() {
      look.disconnect();
      await server.stop();
      rmSync(stateFolder, { recursive: true, force: true });
    },
  };
}
