import type { Counter, Registry } from 'prom-client';
import { isTrustedPeer } from './client.ts';
import { once } from './flow/once.ts';
import { type RunningServer, type ServerOptions, startServer } from './http-server.ts';
import type { Logger } from './log.ts';
import { serveMetrics } from './metrics-page.ts';
import type { ServerConfig } from './settings/server.ts';

/** A running app: its address, and how to stop it without losing a request. */
export interface RunningApp {
  url: string;
  metricsUrl: string;
  /** Can be called twice. */
  stop(): Promise<void>;
}

/** What middleware and metrics need from the server, which starts after them. */
export interface Serving {
  isDraining: boolean;
  /** Null until it listens. */
  server: RunningServer | null;
}

export const notServing = (): Serving => ({ isDraining: false, server: null });

/** Serves an app, and its metrics on a separate port. `stop` drains both, then calls `close`. */
export async function serveApp(
  serving: Serving,
  options: Pick<ServerOptions, 'handler' | 'headers' | 'handlesFaults'> & {
    /** The name of the app in the log: "the API". */
    name: string;
    config: ServerConfig;
    /** See `GuardOptions`. */
    unknownKeepAliveSeconds?: number;
    metrics: { registry: Registry; responsesCut: Counter<'reason'>; connectionsRefused: Counter };
    log: Logger;
    close: () => Promise<void>;
  },
): Promise<RunningApp> {
  const { name, config, metrics, log } = options;
  const { host, port, metricsPort, drainDelayMs, keepAliveSeconds } = config;
  const metricsServer = await startServer({ handler: serveMetrics(metrics.registry), host, port: metricsPort });
  const server = await startServer({
    handler: options.handler,
    headers: options.headers ?? {},
    handlesFaults: options.handlesFaults ?? false,
    host,
    port,
    drainDelayMs,
    keepAliveSeconds,
    bounds: {
      unknownKeepAliveSeconds: options.unknownKeepAliveSeconds ?? null,
      ...config.bounds,
      isTrusted: (address) => isTrustedPeer(address, config.trustedProxies),
      onCut: (cut) => {
        metrics.responsesCut.inc({ reason: cut.reason });
        log.warn(cut, 'a connection was cut: its client did not read its responses in time');
      },
      onConnectionRefused: () => metrics.connectionsRefused.inc(),
    },
    onDraining: () => {
      serving.isDraining = true;
    },
  });
  serving.server = server;
  log.info({ url: server.url, metricsUrl: metricsServer.url }, `${name} is listening`);

  async function close(): Promise<void> {
    await server.stop();
    await metricsServer.stop();
    await options.close();
  }
  return {
    url: server.url,
    metricsUrl: metricsServer.url,
    stop: once(close),
  };
}
