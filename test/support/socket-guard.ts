import { createHook } from 'node:async_hooks';

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

/** The databases and servers of the tests that this process runs; their ports are not reused. */
const known = new Set<string>();

/** Lets guards accept connections to these URLs: the database, and what a test itself visits. */
export function allowSockets(...urls: readonly string[]): void {
  for (const target of urls.flatMap(targetsOf)) known.add(target);
}

/**
 * Fails the test, or the tests of a file, when this process connects to another place than was
 * allowed before they have finished. `hasQueries`: it may ask the configured name servers.
 */
export function guardSockets(onFinished: (end: () => void) => void, { hasQueries = false } = {}): void {
  const watch = watchSockets();
  onFinished(() => {
    watch.end();
    const isServer = (opening: string) => opening.includes('at startDnsServer '); // the test's own
    const isQuery = (opening: string) => hasQueries && opening.startsWith('dns ');
    const refused = watch.list(known).refused.filter((opening) => !isServer(opening) && !isQuery(opening));
    if (refused.length > 0) throw new Error(`connections that were not allowed:\n${refused.join('\n')}`);
  });
}

/** The lookup of a URL's host, and its connections. `localhost` has two addresses. */
function targetsOf(url: string): string[] {
  const { hostname, port } = new URL(url);
  const addresses = hostname === 'localhost' ? ['127.0.0.1', '::1'] : [hostname];
  return [`lookup ${hostname}`, ...addresses.map((address) => `tcp ${address}:${port}`)];
}
