/** TCP ports of the embedded stack, whose servers listen on 127.0.0.1 only. */
import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';
import type { Report } from './process.ts';

/** Sets the first of the ports of a stack. */
export const portVariable = 'ORG_API_PORT';

/**
 * Returns a free port of 127.0.0.1, above 10080 (browsers reject lower ones) and outside the ports
 * of outgoing connections, which could take it first. After fifty tries the system chooses.
 */
export async function getFreePort(): Promise<number> {
  for (let tries = 0; tries < 50; tries += 1) {
    const port = randomInt(10_100, 30_000);
    if ((await tryPort(port)) !== null) return port;
  }
  const port = await tryPort(0);
  if (port === null)
    throw new Error('The system has no free port on 127.0.0.1: end some of the programs that listen there.');
  return port;
}

/**
 * Returns the preferred port (null: none) when it is free; otherwise a free one, and reports the
 * change with the variable that moves the preferred one.
 */
export async function choosePort(preferred: number | null, server: string, report: Report): Promise<number> {
  if (preferred === null) return getFreePort();
  if ((await tryPort(preferred)) !== null) return preferred;
  const port = await getFreePort();
  report(
    `${server}: port ${preferred} is taken by another program, using ${port} instead (${portVariable} sets another)`,
  );
  return port;
}

/** Listens briefly. Returns the port, or null when it is taken or not allowed. */
function tryPort(port: number): Promise<number | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(null));
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address ? address.port : null));
    });
  });
}
