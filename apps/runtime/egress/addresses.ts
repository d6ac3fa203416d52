import { type AllowList, checkAddress } from '#domain/webhooks/address/addresses.ts';
import type { Target } from '#domain/webhooks/address/url.ts';
import type { Resolution, Resolve } from './resolve.ts';

/**
 * Returns the addresses of a checked URL's host, or a cause when one of them is not allowed. A connection is made to
 * these addresses, never to the name, so that DNS cannot change between the check and the connection.
 */
export async function findAddresses(
  target: Target,
  { allow, resolve, signal }: { allow: AllowList; resolve: Resolve; signal: AbortSignal },
): Promise<Resolution> {
  if (target.address !== null) return { ok: true, addresses: [target.address] };
  const resolution = await Promise.race([resolve(target.hostname, signal), aborted(signal)]);
  if (!resolution?.ok) return { ok: false, cause: resolution?.cause ?? 'dns_unavailable' };
  const checks = resolution.addresses.map((address) => checkAddress(address, allow));
  if (!checks.every((one) => one.ok)) return { ok: false, cause: 'name_not_public' };
  if (target.url.protocol === 'http:' && !checks.every((one) => one.allowed)) return { ok: false, cause: 'url_scheme' };
  return { ok: true, addresses: resolution.addresses };
}

function aborted(signal: AbortSignal): Promise<null> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(null);
    else signal.addEventListener('abort', () => resolve(null), { once: true });
  });
}
