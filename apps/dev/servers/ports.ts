/** TCP ports of the embedded stack, whose servers listen on 127.0.0.1 only. */
import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';
import { acquireLock } from '../state-lock.mjs';
import { cacheFolder } from './cache-folder.ts';
import type { Report } from './process.ts';

/** Sets the first of the ports of a stack. */
export const portVariable = 'ORG_API_PORT';

/**
 * Returns a free port of 127.0.0.1, above 10080 (browsers reject lower ones) and outside the ports
 * of outgoing connections, which could take it first.
 */
export async function getFreePort(): Promise<number> {
  for (let tries = 0; tries < 50; tries += 1) {
    const port = randomInt(10_100, 30_000);
    if (await isFree(port)) return port;
  }
  throw new Error('Fifty ports of 127.0.0.1 were tried, and none is free: end some of the programs that listen there.');
}

/** Gives back what this process has claimed. */
const claims = new Set<() => void>();
process.once('exit', () => {
  for (const unlock of claims) unlock();
});

/**
 * Claims a port until this process ends. Returns false when another stack has: it may have seen the port free at the
 * same moment, and its server listens seconds later.
 */
function claim(port: number): boolean {
  const { unlock, holder } = acquireLock(cacheFolder('ports', String(port)));
  if (unlock !== undefined) claims.add(unlock);
  return unlock !== undefined || holder === process.pid;
}

/**
 * Returns the preferred port (null: none) when it is free; otherwise a free one, and reports the
 * change with the variable that moves the preferred one.
 */
export async function choosePort(preferred: number | null, server: string, report: Report): Promise<number> {
  if (preferred === null) return getFreePort();
  if (claim(preferred) && (await isFree(preferred))) return preferred;
  const port = await getFreePort();
  report(
    `${server}: port ${preferred} is taken by another program, using ${port} instead (${portVariable} sets another)`,
  );
  return port;
}

/** Listens briefly. Returns false when the port is taken or not allowed. */
export function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)));
  });
}
