import { spawn } from 'node:child_process';
import { once as event } from 'node:events';
import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import { inject, onTestFinished, vi } from 'vitest';
import { once } from '#runtime/flow/once.ts';
import { installPackages } from '../../apps/dev/servers/apt.ts';
import { getFreePort } from '../../apps/dev/servers/ports.ts';
import { endChild } from './end-child.ts';
import { temporaryFolder } from './temporary-folder.ts';

const program = '/usr/sbin/pgbouncer';
/** PgBouncer does not run as root, but as the account with the least rights. */
const account = { uid: 65_534, gid: 65_534 };

const install = once(async () => {
  if (!existsSync(program)) await installPackages(['pgbouncer'], (line) => console.log(`  ${line}`));
});

/**
 * Starts Debian's PgBouncer in front of the run's PostgreSQL with these settings, for one test. Returns
 * what leads a URL of that server through it.
 *
 * @throws Error when it is not installed and cannot be.
 */
export async function startPgBouncer(settings: Record<string, string>): Promise<(url: string) => string> {
  await install();
  const folder = temporaryFolder();
  const server = new URL(inject('databaseAdminUrl'));
  const logins = [server.href, ...Object.values(inject('databaseLogins'))].map((url) => new URL(url));
  const port = await getFreePort();
  const users = logins.map(({ username, password }) => `"${username}" "${decodeURIComponent(password)}"\n`);
  writeFileSync(path.join(folder, 'users.txt'), users.join(''));
  const all = { listen_addr: '127.0.0.1', listen_port: port, unix_socket_dir: '', auth_type: 'plain', ...settings };
  const lines = Object.entries({ ...all, auth_file: 'users.txt' }).map(([name, value]) => `${name} = ${value}\n`);
  writeFileSync(
    path.join(folder, 'pgbouncer.ini'),
    `[databases]\n* = host=127.0.0.1 port=${server.port}\n[pgbouncer]\n${lines.join('')}`,
  );
  chmodSync(folder, 0o755);
  const child = spawn(program, ['-q', 'pgbouncer.ini'], {
    cwd: folder,
    stdio: 'ignore',
    ...(process.getuid?.() === 0 && account),
  });
  onTestFinished(() => void endChild(child));
  await vi.waitFor(
    async () => {
      const socket = connect(port, '127.0.0.1');
      await event(socket, 'connect').finally(() => socket.destroy());
    },
    { timeout: 10_000 },
  );
  return (url) => {
    const through = new URL(url);
    through.host = `127.0.0.1:${port}`;
    return through.href;
  };
}
