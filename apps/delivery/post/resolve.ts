import { Resolver } from 'node:dns/promises';
import type { Cause, FailureCause } from '#domain/webhooks/causes.ts';

/** Returns all addresses of a name, IPv4 first, or why there are none. Never throws. */
export type Resolve = (hostname: string, signal: AbortSignal) => Promise<Resolution>;
export type Resolution = { ok: true; addresses: string[] } | { ok: false; cause: Cause };

/** Node looks once a second, so a try ends after 2 s. Two for a name and two for the root end before 10 s. */
const tryTimeoutMs = 1_500;
/** How long AAAA may take once A has answered: the delay of RFC 8305, section 3. */
const resolutionDelayMs = 50;

/**
 * Creates a resolver that queries DNS itself (A and AAAA) each time, without a cache.
 *
 * - It does not use `dns.lookup`, which blocks one of libuv's four threads while a name server
 *   hangs, cannot be cancelled, and reads `/etc/hosts` and search domains, which could lead a
 *   public name into the cluster.
 * - A type that fails while the other has addresses is ignored, and once A has answered, AAAA has
 *   50 ms: some old load balancers never answer it.
 * - Each name has a separate channel, which can be cancelled, uses a random port (harder to forge
 *   answers to), and reads a changed resolv.conf.
 * - When no server answers, and the root's name servers cannot be queried either, it is an internal
 *   error. Otherwise the zone is at fault.
 */
export function createResolve({ servers }: { servers?: string[] } = {}): Resolve {
  return async (hostname, signal) => {
    const resolver = openResolver(servers);
    const cancel = () => resolver.cancel();
    signal.addEventListener('abort', cancel, { once: true });
    let delay: NodeJS.Timeout | undefined;
    const startDelay = () => {
      delay = setTimeout(cancel, resolutionDelayMs);
    };
    try {
      const v4 = resolver.resolve4(hostname);
      v4.then(startDelay, () => {});
      const lookups = await Promise.allSettled([v4, resolver.resolve6(hostname)]);
      const addresses = lookups.flatMap((lookup) => (lookup.status === 'fulfilled' ? lookup.value : []));
      if (addresses.length > 0) return { ok: true, addresses };
      const cause = causeOfCodes(
        lookups.map((lookup) => (lookup.status === 'rejected' ? lookup.reason.code : 'ENODATA')),
      );
      const needsProof = cause === 'dns_failed' || cause === 'dns_timeout';
      if (needsProof && !signal.aborted && !(await canResolveRoot(resolver)))
        return { ok: false, cause: 'dns_unavailable' };
      return { ok: false, cause };
    } finally {
      clearTimeout(delay);
      signal.removeEventListener('abort', cancel);
    }
  };
}

/** Opens a channel that tries one server twice, or the first two of several once. */
function openResolver(servers = new Resolver().getServers()): Resolver {
  const tries = servers.length > 1 ? 1 : 2;
  const resolver = new Resolver({ timeout: tryTimeoutMs, maxTimeout: tryTimeoutMs, tries });
  resolver.setServers(servers.slice(0, 2));
  return resolver;
}

function causeOfCodes(codes: string[]): FailureCause {
  if (codes.includes('ENOTFOUND')) return 'dns_no_such_name'; // a name that does not exist has neither type
  if (codes.every((code) => code === 'ENODATA')) return 'dns_no_address';
  return codes.some((code) => code === 'ETIMEOUT' || code === 'ECANCELLED') ? 'dns_timeout' : 'dns_failed';
}

/** Returns whether the resolver works at all: it gets any answer to this question. */
async function canResolveRoot(resolver: Resolver): Promise<boolean> {
  try {
    await resolver.resolveNs('.');
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'ENOTFOUND' || code === 'ENODATA' || code === 'EREFUSED' || code === 'ENOTIMP';
  }
}
