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

/** A connection or lookup that this process started. */
export interface Opening {
  kind: string;
  /** Node fills it in after the hook was called. */
  resource: { address?: string; port?: number; hostname?: string };
  stack: string;
}

/** Calls a function for every connection and lookup that this process starts, by whatever library. */
export function onOpening(report: (opening: Opening) => void): () => void {
  const init = (_id: number, kind: string, _trigger: number, resource: object) => {
    if (Object.hasOwn(kinds, kind)) report({ kind, resource, stack: new Error('opened here').stack ?? '' });
  };
  const hook = createHook({ init, trackPromises: false }).enable();
  return () => void hook.disable();
}

/** Returns where a connection or lookup led, as `kind address:port`. */
export function formatTarget({ kind, resource: { address, port, hostname } }: Opening): string {
  return `${kinds[kind]} ${address === undefined ? (hostname ?? '') : `${address}:${port}`}`;
}

/** Returns the lookup of a URL's host, and its connections. `localhost` has two addresses. */
export function listTargets(url: string): string[] {
  const { hostname: host, port } = new URL(url);
  const hostname = host.replace(/^\[|\]$/g, '');
  const addresses = hostname === 'localhost' ? ['127.0.0.1', '::1'] : [hostname];
  return [`lookup ${hostname}`, ...addresses.map((address) => `tcp ${address}:${port}`)];
}

/** Returns where an app may connect to by its settings: the servers of them that it may use. */
export const ownTargets = (
  environment: Readonly<Record<string, string | undefined>>,
  allowed: readonly string[],
): string[] => listServers(environment).flatMap(([server, url]) => (allowed.includes(server) ? listTargets(url) : []));

/** The server that a setting names. */
const servers: Readonly<Record<string, string>> = {
  REDIS_URL: 'Redis',
  TEMPORAL_ADDRESS: 'Temporal',
  API_URL: 'API',
  OTEL_EXPORTER_OTLP_ENDPOINT: 'OTLP',
  MAIL_URL: 'mail server',
};

/** Returns the servers of an app's settings, by the names that SECURITY.md has for them, with their URLs. */
export function listServers(
  environment: Readonly<Record<string, string | undefined>>,
): [server: string, url: string][] {
  return Object.entries(environment).flatMap(([name, value = '']): [string, string][] => {
    const server = name.endsWith('DATABASE_URL') ? 'PostgreSQL' : servers[name];
    const url = server === 'Temporal' ? `http://${value}` : value;
    // It is from a file, or rejected by the app, when it is no URL.
    return server !== undefined && URL.canParse(url) ? [[server, url]] : [];
  });
}
