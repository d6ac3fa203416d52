/** The receivers that the READMEs of the kits show, as they are. */
import path from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { openPostgres } from './own-databases.ts';
import { expectCertified, readBlocks, readTypescriptReceiver, sqliteReceiver } from './readme-receivers.ts';

it('the receiver of the Python README takes events at once, passes certify, and logs why it answers 503', async () => {
  const [code = '', ...more] = readBlocks('receiver-python', 'python');
  expect(more).toEqual([]);
  await expectCertified(sqliteReceiver({ name: 'receiver.py', code }));
});

it('the receiver of the TypeScript README with node:sqlite does the same', async () => {
  const code = readTypescriptReceiver('node:sqlite');
  await expectCertified(sqliteReceiver({ name: 'receiver.mjs', code }));
});

it('the receiver of the TypeScript README with PostgreSQL does the same', async () => {
  const { database, query } = await openPostgres();
  const { hostname, port, username, password, pathname } = new URL(database);
  await expectCertified({
    file: { name: 'receiver.mjs', code: readTypescriptReceiver('pg') },
    folder: temporaryFolder(),
    environment: {
      PGHOST: hostname,
      PGPORT: port,
      PGUSER: username,
      PGPASSWORD: password,
      PGDATABASE: pathname.slice(1),
    },
    modules: { pg: path.join(import.meta.dirname, '../../../node_modules/pg') },
    query,
  });
});
