import { chownSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { onTestFinished } from 'vitest';
import { getFreePort } from '../../apps/dev/servers/ports.ts';
import type { Cluster } from '../../apps/dev/servers/postgres-cluster.ts';
import { spawnDetached } from '../../apps/dev/servers/process.ts';
import { programEnvironment } from '../../apps/dev/servers/program-environment.ts';

const settings = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'max_connections=200', 'fsync=off'];

/**
 * Starts PostgreSQL on a copy of a cluster's data, and stops it when the test ends. Returns its port;
 * it may not answer yet.
 */
export async function startCopy({ account, binaries, logFile }: Cluster, data: string): Promise<number> {
  const port = await getFreePort();
  const args = ['-D', data, '-p', String(port), ...settings.flatMap((setting) => ['-c', setting])];
  const launch = { command: binaries.postgres, args, cwd: '/', env: programEnvironment(), account };
  const { stop } = await spawnDetached(launch, `${logFile}-${path.basename(data)}`);
  onTestFinished(stop);
  return port;
}

/** Writes a file into a folder of a cluster, for the account that its server runs as. */
export function writeForServer({ account }: Cluster, file: string, content: string): void {
  writeFileSync(file, content);
  if (account) chownSync(file, account.uid, account.gid);
}
