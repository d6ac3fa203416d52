/**
 * The embedded Redis of `npm start` and `npm test`: `redis-server` or `valkey-server`, 7 or newer.
 *
 * - Nothing is stored on disk: the limiter remembers 60 seconds. `noeviction`, because an evicted
 *   window would let a key read too much.
 * - It never takes port 6379 by default, where Debian's package may start its own server.
 * - No password: it holds fingerprints and times of development keys, on loopback.
 */
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { Redis } from 'ioredis';
import { installPackages } from './apt.ts';
import { choosePort } from './ports.ts';
import type { Report } from './process.ts';
import { programEnvironment } from './program-environment.ts';
import { startServer } from './server-program.ts';

const oldestMajor = 7;
const settings = {
  bind: '127.0.0.1',
  save: '',
  appendonly: 'no',
  'maxmemory-policy': 'noeviction',
  'set-proc-title': 'no', // `ps` shows the folder, and so the stack
};

/**
 * Brings up Redis for `stateFolder`, on `port` or another free one. Returns null, and reports it,
 * when this machine has no Redis and none can be installed.
 *
 * @throws StartupError when Redis is installed and fails.
 */
export async function startRedis(options: { stateFolder: string; port?: number | null; report: Report }) {
  const { stateFolder, port = null, report } = options;
  const program = await getProgram(report);
  if (program === null) return null;
  const folder = path.join(stateFolder, 'redis');
  const server = await startServer({
    name: `Redis ${program.version}`,
    folder,
    readyMs: 10_000,
    instead: `set REDIS_URL to a Redis ${oldestMajor} or newer`,
    report,
    async prepare() {
      const chosen = await choosePort(port, 'Redis', report);
      const values = { ...settings, port: String(chosen), dir: folder };
      const args = Object.entries(values).flatMap(([name, value]) => [`--${name}`, value]);
      const launch = { command: program.command, args, cwd: folder, env: programEnvironment() };
      return { server: { port: chosen }, launch, ports: [chosen] };
    },
    async check({ port }, { pid }) {
      if ((await readPidBehind(port)) !== pid) throw new Error(`another Redis answers on port ${port}`);
    },
  });
  return { ...server, url: `redis://127.0.0.1:${server.port}` };
}

async function getProgram(report: Report) {
  const found = findProgram() ?? ((await installPackages(['redis-server'], report)) ? findProgram() : null);
  if (found === null)
    report(
      `Redis: no redis-server or valkey-server of version ${oldestMajor} or newer on PATH, so the limiter ` +
        'counts inside the API process. Install one, or set REDIS_URL, to count in Redis.',
    );
  return found;
}

function findProgram(): { command: string; version: string } | null {
  for (const command of ['redis-server', 'valkey-server']) {
    const { stdout } = spawnSync(command, ['--version'], { encoding: 'utf8', env: programEnvironment() });
    const version = /\bv=(\d+[\d.]*)/.exec(stdout ?? '')?.[1];
    if (version && Number.parseInt(version, 10) >= oldestMajor) return { command, version };
  }
  return null;
}

/** Returns the pid that the Redis on `port` reports. @throws Error when none answers */
async function readPidBehind(port: number): Promise<number> {
  const bounds = { connectTimeout: 1_000, commandTimeout: 1_000, maxRetriesPerRequest: 0 };
  const client = new Redis({ port, host: '127.0.0.1', lazyConnect: true, retryStrategy: () => null, ...bounds });
  client.on('error', () => {}); // the failed command reports it as well
  try {
    await client.connect();
    return Number(/process_id:(\d+)/.exec(await client.info('server'))?.[1]);
  } finally {
    client.disconnect();
  }
}
