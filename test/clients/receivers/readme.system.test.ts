/** The receiver with SQLite of the TypeScript README, by the driver that is not Node's own. */
import path from 'node:path';
import { expect, it } from 'vitest';
import { tools } from '../installed-packages.ts';
import { expectCertified, readTypescriptReceiver, sqliteReceiver } from './readme-receivers.ts';

it('the receiver of the TypeScript README passes certify with better-sqlite3', { timeout: 600_000 }, async () => {
  const code = readTypescriptReceiver('better-sqlite3');
  expect(code).toContain("from 'better-sqlite3';");
  const modules = { 'better-sqlite3': path.join(await tools.npm(), 'better-sqlite3') };
  await expectCertified({ ...sqliteReceiver({ name: 'receiver.mjs', code }), modules });
});
