import { createHook } from 'node:async_hooks';
import { inject } from 'vitest';
import { connectionsOf } from './connections.ts';

// cspell:ignore TCPCONNECTWRAP PIPECONNECTWRAP UDPWRAP GETADDRINFOREQWRAP GETNAMEINFOREQWRAP QUERYWRAP

/** What opens a connection or looks up a name, as Node's own parts call it. */
const kinds: Readonly<Record<string, string>> = {
  TCPCONNECTWRAP: 'tcp',
  PIPECONNECTWRAP: 'pipe',
  UDPWRAP: 'udp',
  GETADDRINFOREQWRAP: 'lookup',
  GETNAMEINFOREQWRAP: 'reverse lookup',
  QUERYWRAP: 'dns',
};

interface Opening {
  kind: string;
  /** Node fills it in after the hook was called. */
  resource: { address?: string; port?: number; hostname?: string };
  stack: string;
}

/** Sees every connection and lookup that this process starts, by whatever library. */
export function watchSockets() {
  const openings: Opening[] = [];
  const init = (_id: number, kind: string, _trigger: number, resource: object) => {
    if (Object.hasOwn(kinds, kind)) openings.push({ kind, resource, stack: new Error('opened here').stack ?? '' });
  };
  const hook = createHook({ init, trackPromises: false }).enable();
  return {
    /** Returns where they led, as `kind address:port`, and who started those outside `allowed`. */
    list(allowed: ReadonlySet<string>): { targets: string[]; refused: string[] } {
      const seen = openings.map((opening) => ({ target: targetOf(opening), stack: opening.stack }));
      return {
        targets: seen.map(({ target }) => target),
        refused: seen.filter(({ target }) => !allowed.has(target)).map(({ target, stack }) => `${target}\n${stack}`),
      };
    },
    end: () => void hook.disable(),
  };
}

function targetOf({ kind, resource: { address, port, hostname } }: Opening): string {
  return `${kinds[kind]} ${address === undefined ? (hostname ?? '') : `${address}:${port}`}`;
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
  for (const target of urls.flatMap(targetsOf)) targets.add(target);
}

/** Says where the servers of an app's settings listen, and the database of the tests. */
export function allowSettings(environment: Readonly<Record<string, string>>): void {
  allowSockets('PostgreSQL', inject('databaseAdminUrl'));
  for (const [name, value] of Object.entries(environment)) {
    if (value === '') continue; // it comes from a file
    if (name.endsWith('DATABASE_URL')) allowSockets('PostgreSQL', value);
    if (name === 'REDIS_URL') allowSockets('Redis', value);
    if (name === 'TEMPORAL_ADDRESS') allowSockets('Temporal', `http://${value}`);
    if (name === 'OTEL_EXPORTER_OTLP_ENDPOINT') allowSockets('OTLP', value);
  }
}

/** Guards at work, each with the processes that ran beside it in this process of Vitest. */
const active = new Set<Set<string>>();

/**
 * Fails the test, or the tests of a file, when this process connects to another place before they
 * have finished than SECURITY.md lists for `app`, or for an app that ran beside it.
 */
export function guardSockets(onFinished: (end: () => void) => void, app: string): void {
  connectionsOf(app); // throws for an unknown app before the test
  const apps = new Set([app, ...[...active].flatMap((others) => [...others])]);
  for (const others of active) others.add(app);
  active.add(apps);
  const watch = watchSockets();
  onFinished(() => {
    watch.end();
    active.delete(apps);
    const servers = ['test', ...[...apps].flatMap((one) => connectionsOf(one))];
    const allowed = new Set(servers.flatMap((server) => [...(known.get(server) ?? [])]));
    const isServer = (opening: string) => /at start(DnsServer|Proxy) /.test(opening); // the test's own
    const isQuery = (opening: string) => servers.includes('DNS') && opening.startsWith('dns ');
    const refused = watch.list(allowed).refused.filter((opening) => !isServer(opening) && !isQuery(opening));
    if (refused.length > 0) throw new Error(`connections that were not allowed:\n${refused.join('\n')}`);
  });
}

/** The lookup of a URL's host, and its connections. `localhost` has two addresses. */
function targetsOf(url: string): string[] {
  const { hostname, port } = new URL(url);
  const addresses = hostname === 'localhost' ? ['127.0.0.1', '::1'] : [hostname];
  return [`lookup ${hostname}`, ...addresses.map((address) => `tcp ${address}:${port}`)];
}
