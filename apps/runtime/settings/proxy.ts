import { StartRefused } from '../start-refused.ts';

const names = ['http_proxy', 'https_proxy', 'all_proxy', 'grpc_proxy', 'node_use_env_proxy'];

/**
 * Refuses an environment that names an egress proxy. Some libraries would use it and others not:
 * Temporal's client would, its worker, traces and posts to receivers would not. The address rules
 * of webhooks judge the address of a connection, which would be the proxy's.
 *
 * @throws StartRefused
 */
export function refuseProxy(environment: Record<string, string | undefined>): void {
  const found = Object.keys(environment).find((name) => names.includes(name.toLowerCase()) && environment[name]);
  if (found === undefined) return;
  throw new StartRefused(
    `${found} is set, but org-api connects to its servers and to receivers directly, without a proxy: ` +
      'remove it, and let the network route or allow these connections.',
  );
}
