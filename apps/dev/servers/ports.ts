/**
 * TCP ports of the embedded stack. Everything listens on 127.0.0.1 only, so only that address is
 * tried. Design section 2.
 */
import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/**
 * Whether a server could listen on this port of 127.0.0.1 now. Another program may still take it
 * first: callers retry.
 */
export async function isPortFree(port: number): Promise<boolean> {
  return (await tryPort(port)) !== null;
}

/**
 * A port of 127.0.0.1 that is free now: any of a range (above 10080, which browsers refuse) that
 * systems give to no outgoing connection, which may otherwise take the port before the server that
 * it is for listens (seen in tests, where thousands of connections are made meanwhile). When fifty
 * tries find none, one that the system chooses.
 */
export async function getFreePort(): Promise<number> {
  for (let tries = 0; tries < 50; tries += 1) {
    const port = randomInt(10_100, 30_000);
    if (await isPortFree(port)) return port;
  }
  const port = await tryPort(0);
  if (port === null)
    throw new Error('The system has no free port on 127.0.0.1: end some of the programs that listen there.');
  return port;
}

/**
 * The preferred port when it is free, else any free one with a line saying so; null prefers none.
 */
export async function choosePort(
  preferred: number | null,
  server: string,
  report: (line: string) => void,
): Promise<number> {
  if (preferred !== null && (await isPortFree(preferred))) return preferred;
  const port = await getFreePort();
  if (preferred !== null) report(`${server}: port ${preferred} is taken by another program, using ${port} instead`);
  return port;
}

/** Listens for a moment; the port that was had, or null when it is taken or not allowed. */
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
