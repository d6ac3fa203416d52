import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Agent, request } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { KubeConfig } from '@kubernetes/client-node';
import { onTestFinished } from 'vitest';
import type { ApiServer } from '#test/api-server.ts';
import { ReusedKubeConfig } from '../../apps/operator/kube/kube-config.ts';

/** An HTTP server in front of the API server that answers late. */
export interface SlowApiServer {
  kubeConfig: KubeConfig;
  /**
   * How long a request waits from now on before the API server gets it. It does also when the client
   * has gone meanwhile, as with a proxy that does not notice.
   */
  delayMs: number;
  /** Requests that wait, such as `PATCH /apis/…`. */
  readonly waiting: ReadonlySet<string>;
}

/** Starts such a server. It closes when the test ends. */
export async function startSlowApiServer({ port }: Pick<ApiServer, 'port'>): Promise<SlowApiServer> {
  const agent = new Agent({ rejectUnauthorized: false, keepAlive: true });
  const waiting = new Set<string>();
  const timers = new Set<NodeJS.Timeout>();

  function forward(incoming: IncomingMessage, response: ServerResponse): void {
    const { method, url: path, headers } = incoming;
    const sent = request({ agent, host: '127.0.0.1', port, method, path, headers }, (upstream) => {
      response.writeHead(upstream.statusCode ?? 500, upstream.headers);
      upstream.pipe(response).on('close', () => upstream.destroy());
      response.flushHeaders();
    });
    sent.on('error', () => response.destroy());
    incoming.pipe(sent);
  }
  const server = createServer((incoming, response) => {
    // A watch that is under way shows changes; one that waits would not.
    if (slow.delayMs === 0 || incoming.url?.includes('watch=true')) return forward(incoming, response);
    const shown = `${incoming.method} ${incoming.url}`;
    waiting.add(shown);
    const timer = setTimeout(() => {
      timers.delete(timer);
      waiting.delete(shown);
      forward(incoming, response);
    }, slow.delayMs);
    timers.add(timer);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    for (const timer of timers) clearTimeout(timer);
    server.close();
    server.closeAllConnections();
    agent.destroy();
  });
  const kubeConfig = new ReusedKubeConfig();
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  kubeConfig.loadFromClusterAndUser(
    { name: 'slow', server: address, skipTLSVerify: true },
    { name: 'operator', token: 'operator-token' },
  );
  const slow: SlowApiServer = { kubeConfig, delayMs: 0, waiting };
  return slow;
}
