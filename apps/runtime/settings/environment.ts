import { StartupError } from '../errors.ts';

const proxies = ['http_proxy', 'https_proxy', 'all_proxy', 'grpc_proxy', 'node_use_env_proxy'];

/**
 * Rejects variables that only some connections of an app would obey.
 *
 * - An egress proxy: Temporal's client would use it; its worker, traces and posts to receivers
 *   would
 *   not. The address rules of webhooks check the address of a connection, which would be the proxy's.
 * - `NODE_TLS_REJECT_UNAUTHORIZED=0`: traces and the Kubernetes client would accept any
 *   certificate.
 *
 * @throws StartupError
 */
export function rejectEnvironment(environment: Record<string, string | undefined>): void {
  const proxy = Object.keys(environment).find((name) => proxies.includes(name.toLowerCase()) && environment[name]);
  if (proxy !== undefined)
    throw new StartupError(
      `${proxy} is set, but org-api connects to its servers and to receivers directly, without a proxy: ` +
        'remove it, and let the network route or allow these connections.',
    );
  if (environment.NODE_TLS_REJECT_UNAUTHORIZED === '0')
    throw new StartupError(
      'NODE_TLS_REJECT_UNAUTHORIZED is 0, but org-api connects only to servers whose certificate is verified: ' +
        'remove it, and name an authority of your own in the setting of the server.',
    );
}
