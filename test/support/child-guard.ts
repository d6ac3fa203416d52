/**
 * Loaded by Node before an app, or a part of it (`test/<app>/<name>-child.ts`), in a separate process
 * (`childEnvironment`): writes each place that it connects to and that is none of its settings into a
 * file of `SOCKETS_FOLDER`, once. `checkChildren` reads it. Programs that are no app of SECURITY.md are
 * not watched.
 */
import { subscribe } from 'node:diagnostics_channel';
import { appendFileSync } from 'node:fs';
import type { AddressInfo, Server } from 'node:net';
import path from 'node:path';
import { connections, getProcessName } from './connections.ts';
import { formatTarget, onOpening, ownTargets } from './socket-watch.ts';

const program = /\/(?:apps\/(?<app>\w+)\/main|test\/(?<app>\w+)\/[\w-]+-child)\.ts$/.exec(process.argv[1] ?? '');
const app = getProcessName(program?.groups?.app ?? '');
const servers = connections.get(app);
if (servers !== undefined) watch(servers);

function watch(allowed: readonly string[]): void {
  const file = path.join(process.env.SOCKETS_FOLDER ?? '', String(process.pid));
  const known = new Set(ownTargets(process.env, allowed));
  // A worker reads metrics that its SDK serves to it, at a port that the worker found by listening.
  subscribe('tracing:net.server.listen:asyncEnd', (message) => {
    const address = (message as { server: Server }).server.address() as AddressInfo | null;
    if (address !== null) known.add(`tcp 127.0.0.1:${address.port}`);
  });
  onOpening((opening) => {
    process.nextTick(() => {
      const target = formatTarget(opening);
      if (known.has(target)) return;
      known.add(target);
      appendFileSync(file, `${JSON.stringify({ app, target, stack: opening.stack })}\n`);
    });
  });
}
