import { appendFileSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { connections, getConnections, getProcessName } from './connections.ts';
import { listOpenSockets } from './open-sockets.ts';
import { formatTarget, listServers, listTargets, type Opening, onOpening, ownTargets } from './socket-watch.ts';

/** Sees every connection and lookup that this process starts, by whatever library. */
export function watchSockets() {
  const openings: Opening[] = [];
  const end = onOpening((opening) => void openings.push(opening));
  return {
    /** Returns where they led, as `kind address:port`, and who started those outside `allowed`. */
    list(allowed: ReadonlySet<string>): { targets: string[]; rejected: string[] } {
      const seen = openings.map((opening) => ({ target: formatTarget(opening), stack: opening.stack }));
      return {
        targets: seen.map(({ target }) => target),
        rejected: seen.filter(({ target }) => !allowed.has(target)).map(({ target, stack }) => `${target}\n${stack}`),
      };
    },
    end,
  };
}

/** Where servers of the tests listen, by the name that SECURITY.md has for them. */
const known = new Map<string, Set<string>>();

/**
 * Says where a server listens, so that the guard of a process accepts connections to it if SECURITY.md
 * lists it for the process. `test`: what the test itself visits. Ports are not reused.
 */
export function allowSockets(server: string, ...urls: readonly string[]): void {
  const targets = known.get(server) ?? new Set();
  known.set(server, targets);
  for (const target of urls.flatMap(listTargets)) targets.add(target);
}

/** Says where the servers of an app's settings listen. */
export function allowSettings(environment: Readonly<Record<string, string>>): void {
  for (const [server, url] of listServers(environment)) allowSockets(server, url);
}

/** Guards at work, each with the processes that ran beside it in this process of Vitest. */
const active = new Set<Set<string>>();

/**
 * Fails the test, or the tests of a file, when this process connects to another place before they
 * have finished than SECURITY.md lists for `app`, or for an app that ran beside it.
 */
export function guardSockets(onFinished: (end: () => void) => void, app: string): void {
  getConnections(app); // throws for an unknown app before the test
  const apps = new Set([app, ...[...active].flatMap((others) => [...others])]);
  for (const others of active) others.add(app);
  active.add(apps);
  const watch = watchSockets();
  onFinished(() => {
    watch.end();
    active.delete(apps);
    const servers = ['test', ...[...apps].flatMap((one) => getConnections(one))];
    const isServer = (opening: string) => /at start(DnsServer|Proxy) /.test(opening); // the test's own
    reject(
      watch.list(listAllowed(servers)).rejected.filter((opening) => !isServer(opening)),
      servers,
    );
  });
}

/**
 * Adds to these where an app in a separate process is connected to now. What Temporal's client opens
 * is native, so the app itself does not see it.
 */
export function noteOpenSockets(folder: string, pid: number, environment: Readonly<Record<string, string>>): void {
  const app = getProcessName(folder);
  const allowed = connections.get(app);
  if (allowed === undefined) return;
  const own = ownTargets(environment, allowed);
  const file = path.join(process.env.SOCKETS_FOLDER ?? '', `${pid}-open`);
  for (const target of listOpenSockets(pid).filter((one) => !own.includes(one)))
    appendFileSync(file, `${JSON.stringify({ app, target, stack: 'open at the end of the test' })}\n`);
}

/**
 * Reads what the apps in separate processes connected to since the last call.
 *
 * @throws Error when one connected to another place than SECURITY.md lists for it.
 */
export function checkChildren(): void {
  const folder = process.env.SOCKETS_FOLDER ?? '';
  const openings = readdirSync(folder).flatMap((name) => {
    const file = path.join(folder, name);
    const lines = readFileSync(file, 'utf8').split('\n');
    rmSync(file);
    // A process that was killed may have left a part of a line.
    return lines.slice(0, -1).map((line) => JSON.parse(line) as { app: string; target: string; stack: string });
  });
  for (const { app, target, stack } of openings) {
    const servers = getConnections(app);
    if (!listAllowed(servers).has(target)) reject([`${app}: ${target}\n${stack}`], servers);
  }
}

const listAllowed = (servers: readonly string[]): ReadonlySet<string> =>
  new Set(servers.flatMap((server) => [...(known.get(server) ?? [])]));

/** @throws Error for openings that are no query of a process that may make them. */
function reject(openings: readonly string[], servers: readonly string[]): void {
  const rejected = openings.filter((opening) => !(servers.includes('DNS') && /^(\w+: )?dns /.test(opening)));
  if (rejected.length > 0) throw new Error(`connections that were not allowed:\n${rejected.join('\n')}`);
}
