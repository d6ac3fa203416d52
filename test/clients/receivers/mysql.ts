import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { npmPackages } from '#test/npm-packages.ts';
import type { mysql } from '../../../apps/clients/receiver-typescript/src/index.ts';

/** What is used of a pool of mysql2/promise. */
type Pool = Parameters<typeof mysql>[0] & {
  query(sql: string): Promise<[unknown, unknown]>;
  end(): Promise<void>;
};

/** Returns what opens a pool by mysql2, which is installed for these tests alone. */
export async function loadMysql(): Promise<(url: string) => Pool> {
  const modules = await npmPackages({ name: 'test-clients', source: path.join(import.meta.dirname, '../packages') });
  const { createPool } = await import(pathToFileURL(path.join(modules, 'mysql2/promise.js')).href);
  return (uri) => createPool({ uri, connectionLimit: 4 });
}
