/** Real processes of Redis that belong together: a Redis Cluster, and a primary with its sentinels. */
import { spawn, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { Redis } from 'ioredis';
import { onTestFinished, vi } from 'vitest';
import { getFreePort } from '../../apps/dev/servers/ports.ts';
import { endChild } from './end-child.ts';
import { allowSockets } from './socket-guard.ts';
import { temporaryFolder } from './temporary-folder.ts';

/** A process of Redis; `look` is a connection for the test's direct commands. */
interface RedisProcess {
  port: number;
  look: Redis;
  /** Sends SIGKILL; resolves when it has ended. */
  kill(): Promise<void>;
}

/** How soon (ms) the others notice that one is gone. */
const noticeMs = 1_000;
const patient = { timeout: 20_000, interval: 50 };

async function launch(args: (port: number, folder: string) => string[]): Promise<RedisProcess> {
  const program = ['redis-server', 'valkey-server'].find((name) => spawnSync(name, ['--version']).status === 0);
  if (program === undefined) throw new Error('the run has a Redis, but not on PATH');
  const port = await getFreePort();
  allowSockets('Redis', `redis://127.0.0.1:${port}`);
  const folder = temporaryFolder();
  const child = spawn(program, args(port, folder), { cwd: folder, stdio: 'ignore' });
  const look = new Redis({ port, host: '127.0.0.1', retryStrategy: () => 50, maxRetriesPerRequest: null });
  look.on('error', () => {}); // the test kills it on purpose
  const kill = async () => void (await endChild(child));
  onTestFinished(async () => {
    look.disconnect();
    await kill();
  });
  await vi.waitFor(() => look.ping(), patient);
  return { port, look, kill };
}

/** Returns the arguments of a server with these settings and those of every one. */
const listArguments = (settings: Record<string, string>) => (port: number, folder: string) =>
  Object.entries({
    bind: '127.0.0.1',
    port,
    dir: folder,
    save: '',
    'maxmemory-policy': 'noeviction',
    ...settings,
  }).flatMap(([name, value]) => [`--${name}`, `${value}`]);

/** Starts a cluster of three primaries, of which the first has a replica, for one test. */
export async function startRedisCluster() {
  const busPorts = await Promise.all([1, 2, 3, 4].map(() => getFreePort()));
  const nodes = await Promise.all(
    busPorts.map((bus) =>
      launch(
        listArguments({ 'cluster-enabled': 'yes', 'cluster-port': `${bus}`, 'cluster-node-timeout': `${noticeMs}` }),
      ),
    ),
  );
  const [first, second, third, replica] = nodes as [RedisProcess, RedisProcess, RedisProcess, RedisProcess];
  const slots = 16_384;
  for (const [index, { look }] of [first, second, third].entries()) {
    const [from, to] = [index, index + 1].map((third) => Math.round((third * slots) / 3));
    await look.call('cluster', 'addslotsrange', `${from}`, `${(to ?? 0) - 1}`);
    await look.call('cluster', 'set-config-epoch', `${index + 1}`);
  }
  for (const [index, { port }] of nodes.entries())
    if (index > 0) await first.look.call('cluster', 'meet', '127.0.0.1', `${port}`, `${busPorts[index]}`);
  const firstId = String(await first.look.call('cluster', 'myid'));
  await vi.waitFor(() => replica.look.call('cluster', 'replicate', firstId), patient);
  await vi.waitFor(async () => {
    for (const { look } of nodes) {
      if (!/cluster_state:ok/.test(await look.cluster('INFO'))) throw new Error('the cluster is not ready');
      const known = String(await look.call('cluster', 'nodes'));
      if (known.trim().split('\n').length < 4 || !/slave/.test(known)) throw new Error('a node is not known');
    }
    if (!/master_link_status:up/.test(await replica.look.info('replication'))) throw new Error('the replica is behind');
  }, patient);
  return {
    first,
    second,
    third,
    replica,
    url: `redis://127.0.0.1:${second.port},127.0.0.1:${third.port}?cluster=true`,
  };
}

/** Starts a primary with a replica and three sentinels, for one test. `name` is the sentinels' for the primary. */
export async function startRedisSentinels() {
  const name = 'limits';
  const primary = await launch(listArguments({}));
  const replica = await launch(listArguments({ replicaof: `127.0.0.1 ${primary.port}` }));
  const sentinels = await Promise.all(
    [1, 2, 3].map(() =>
      launch((port, folder) => {
        const file = path.join(folder, 'sentinel.conf');
        const settings = [
          `bind 127.0.0.1`,
          `port ${port}`,
          `dir ${folder}`,
          `sentinel monitor ${name} 127.0.0.1 ${primary.port} 2`,
          `sentinel down-after-milliseconds ${name} ${noticeMs}`,
          `sentinel failover-timeout ${name} 5000`,
        ];
        writeFileSync(file, `${settings.join('\n')}\n`);
        return [file, '--sentinel'];
      }),
    ),
  );
  await vi.waitFor(async () => {
    for (const { look } of sentinels) {
      const seen = String(await look.call('sentinel', 'ckquorum', name));
      const replicas = (await look.call('sentinel', 'replicas', name)) as unknown[];
      if (!/^OK 3/.test(seen) || replicas.length !== 1) throw new Error('the sentinels do not know each other');
    }
  }, patient);
  const hosts = sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',');
  return { primary, replica, sentinels, url: `redis://${hosts}?sentinel=${name}` };
}
