import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { onTestFinished } from 'vitest';
import { once } from '#runtime/flow/once.ts';
import { installPackages } from '../../apps/dev/servers/apt.ts';
import { getFreePort } from '../../apps/dev/servers/ports.ts';
import { endChild } from './end-child.ts';
import { findRoom, makeRunFolder, removeRunFolder } from './run-folder.ts';
import { runTool } from './tools.ts';

const program = '/usr/sbin/mariadbd';
const remedy = 'install the package mariadb-server of Debian or Ubuntu';

const install = once(async () => {
  if (!existsSync(program)) await installPackages(['mariadb-server'], (line) => console.log(`  ${line}`));
});

/**
 * Starts Debian's MariaDB on loopback for one test, with an empty database `receiver`, without accounts. Returns its
 * URL; it may not answer yet.
 *
 * @throws Error when it is not installed and cannot be.
 */
export async function startMariadb(): Promise<string> {
  await install();
  const folder = makeRunFolder(findRoom(1));
  onTestFinished(() => removeRunFolder(folder));
  const data = path.join(folder, 'data');
  const user = process.getuid?.() === 0 ? ['--user=mysql'] : [];
  const create = ['mariadb-install-db', '--no-defaults', `--datadir=${data}`, '--skip-test-db', ...user] as const;
  await runTool(create, { what: 'MariaDB could not create its data', remedy });
  await runTool(['mkdir', path.join(data, 'receiver')], { what: 'There is no folder for the database', remedy });
  if (user.length > 0)
    await runTool(['chown', '-R', 'mysql', data], { what: 'MariaDB could not get its data', remedy });
  const port = await getFreePort();
  const settings = [
    '--bind-address=127.0.0.1',
    `--port=${port}`,
    '--skip-grant-tables',
    '--skip-networking=0',
    '--skip-name-resolve',
  ];
  const files = [`--datadir=${data}`, `--socket=${path.join(data, 'socket')}`, '--innodb-flush-log-at-trx-commit=0'];
  const child = spawn(program, ['--no-defaults', ...settings, ...files, ...user], { cwd: '/', stdio: 'ignore' });
  onTestFinished(() => endChild(child).then(() => {}));
  return `mysql://root@127.0.0.1:${port}/receiver`;
}
