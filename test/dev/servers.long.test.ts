import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { Client } from 'pg';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { listenLocally } from '#test/listen-locally.ts';
import { getStateFolder, makeRunFolder, removeRunFolder } from '#test/run-folder.ts';
import { startPostgres } from '../../apps/dev/servers/postgres.ts';
import { becomesTrue } from '../../apps/dev/servers/process.ts';
import { startRedis } from '../../apps/dev/servers/redis.ts';
import { identify } from '../../apps/dev/state-lock.mjs';

type RunningPostgres = Awaited<ReturnType<typeof startPostgres>>;

const isRoot = process.getuid?.() === 0;

/**
 * A state folder for one test; its servers are stopped and it is deleted afterwards. `closedParent`
 * puts it under a 0700 folder.
 */
function setup({ closedParent = false } = {}) {
  const folder = makeRunFolder();
  if (closedParent) chmodSync(folder, 0o700);
  const stateFolder = getStateFolder(folder);
  const lines: string[] = [];
  const report = (line: string) => void lines.push(line);
  onTestFinished(() => removeRunFolder(folder));
  return {
    stateFolder,
    lines,
    postgres: (port: number | null = null) => startPostgres({ stateFolder, port, report }),
    redis: async () => {
      const redis = await startRedis({ stateFolder, report });
      if (!redis) throw new Error('this machine has no Redis');
      return redis;
    },
  };
}

async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

async function kill(pid: number): Promise<void> {
  process.kill(pid, 'SIGKILL');
  await becomesTrue(() => identify(pid) === null, 10_000);
}

function mark(server: RunningPostgres) {
  return query(server.adminUrl, 'create table mark as select 7 as value');
}

const marked = (server: RunningPostgres) => query(server.adminUrl, 'select value from mark');

describe('the embedded PostgreSQL', () => {
  it('continues with its data after a stop, on the port that it is given', async () => {
    const { postgres } = setup();
    const first = await postgres();
    await mark(first);
    await first.stop();

    const second = await postgres(first.port);

    expect(second.port).toBe(first.port);
    expect(await marked(second)).toEqual([{ value: 7 }]);
  });

  it('continues with its data after its postmaster was killed during a statement', async () => {
    const { postgres } = setup();
    const first = await postgres();
    await mark(first);
    const sleeping = query(first.adminUrl, 'select pg_sleep(60)').catch((error: Error) => error);
    await kill(first.pid);
    await sleeping;

    const second = await postgres();

    expect(await marked(second)).toEqual([{ value: 7 }]);
  });

  it('stops the postmaster that a killed start left, and continues with its data', async () => {
    const { postgres } = setup();
    const first = await postgres();
    await mark(first);

    const second = await postgres();

    expect(identify(first.pid)).toBeNull();
    expect(await marked(second)).toEqual([{ value: 7 }]);
    await first.stop(); // finds nothing left to stop
  });

  it('stops once, also when it is asked twice', async () => {
    const { postgres } = setup();
    const server = await postgres();
    await Promise.all([server.stop(), server.stop()]);
    await server.stop();
    expect(identify(server.pid)).toBeNull();
    expect(existsSync(path.join(server.folder, 'data', 'postmaster.pid'))).toBe(false);
  });

  it('starts although another process now has the pid in its lock', async () => {
    const { postgres } = setup();
    const first = await postgres();
    await mark(first);
    await kill(first.pid);
    const other = await sleepAsFolderOwner(first.folder);
    const lock = path.join(first.folder, 'data', 'postmaster.pid');
    writeFileSync(lock, readFileSync(lock, 'utf8').replace(/^\d+/, String(other.pid)));

    const second = await postgres();

    expect(await marked(second)).toEqual([{ value: 7 }]);
    expect(other.exitCode).toBeNull();
  });

  it('takes another port when the wanted one is in use, and says so', async () => {
    const { postgres, lines } = setup();
    const taken = await listenLocally(createServer());
    const server = await postgres(taken);
    expect(server.port).not.toBe(taken);
    expect(lines).toContainEqual(expect.stringContaining(`port ${taken} is taken`));
  });

  it('is UTF-8 whatever LANG is, and listens on loopback only, without a unix socket', async () => {
    const { postgres } = setup();
    for (const name of ['LANG', 'LC_CTYPE']) vi.stubEnv(name, undefined);
    vi.stubEnv('LC_ALL', 'xx_XX.unknown');
    vi.stubEnv('PGDATA', '/nowhere');
    onTestFinished(() => void vi.unstubAllEnvs());

    const server = await postgres();

    const settings = `select current_setting('server_encoding') as encoding, current_setting('listen_addresses') as
      addresses,
      current_setting('unix_socket_directories') as sockets,
      (select datctype from pg_database where datname = 'template0') as ctype`;
    expect(await query(server.adminUrl, settings)).toEqual([
      { encoding: 'UTF8', addresses: '127.0.0.1', sockets: '', ctype: 'C.UTF-8' },
    ]);
  });

  it('hides its password from other users of the machine', async () => {
    const { postgres, stateFolder } = setup();
    const server = await postgres();
    expect(statSync(path.join(stateFolder, 'postgres.password')).mode & 0o777).toBe(0o600);
    const wrong = server.adminUrl.replace(/:[^:@]+@/, ':guess@');
    await expect(query(wrong, 'select 1')).rejects.toMatchObject({ code: '28P01' });
  });

  it('names the remedy when its data is of another version', async () => {
    const { postgres, stateFolder } = setup();
    const server = await postgres();
    await server.stop();
    writeFileSync(path.join(stateFolder, 'postgres', 'data', 'PG_VERSION'), '12\n');
    await expect(postgres()).rejects.toThrow(/of version 12 .* delete .* or set DATABASE_URL/);
  });

  it('names the reason from its log and the remedy when it does not start', async () => {
    const { postgres, stateFolder } = setup();
    const server = await postgres();
    await server.stop();
    writeFileSync(path.join(stateFolder, 'postgres', 'data', 'postgresql.conf'), 'no_such_setting = 1\n');
    await expect(postgres()).rejects.toThrow(/did not start \(.*\): .* set DATABASE_URL/);
  });

  it.runIf(isRoot)(
    'works for root’s clone under a 0700 folder, and starts again when the state folder was deleted',
    async () => {
      const { postgres, stateFolder } = setup({ closedParent: true });
      const first = await postgres();
      expect(first.folder).not.toContain(stateFolder);
      await mark(first);
      await first.stop();
      const second = await postgres();
      expect(await marked(second)).toEqual([{ value: 7 }]);

      rmSync(stateFolder, { recursive: true });
      const third = await postgres();

      expect(identify(second.pid)).toBeNull();
      await expect(marked(third)).rejects.toThrow(/"mark" does not exist/);
    },
  );
});

describe('the embedded Redis', () => {
  it('stops the server that a killed start left, and starts another', async () => {
    const { redis } = setup();
    const first = await redis();
    const second = await redis();
    expect(identify(first.pid)).toBeNull();
    await Promise.all([second.stop(), second.stop(), first.stop()]);
    expect(identify(second.pid)).toBeNull();
  });

  it('stops even when it was paused', async () => {
    const { redis } = setup();
    const server = await redis();
    process.kill(server.pid, 'SIGSTOP');
    await server.stop();
    expect(identify(server.pid)).toBeNull();
  });
});

/**
 * Starts another program, run by the account that owns `folder`, as in a container that reuses
 * pids.
 */
async function sleepAsFolderOwner(folder: string): Promise<ChildProcess> {
  const { uid, gid } = statSync(folder);
  const child = spawn('sleep', ['300'], { stdio: 'ignore', ...(isRoot && { uid, gid }), cwd: '/' });
  onTestFinished(() => void child.kill('SIGKILL'));
  await new Promise((resolve) => child.once('spawn', resolve));
  return child;
}
