import { Resolver } from 'node:dns/promises';
import type { Cause, FailureCause } from '#domain/webhooks/causes.ts';
import { tryStaggered } from './staggered.ts';

/**
 * Returns the first eight addresses of a name, IPv4 and IPv6 in turn (RFC 8305, section 4), or why there are none.
 * Never throws.
 */
export type Resolve = (hostname: string, signal: AbortSignal) => Promise<Resolution>;
export type Resolution = { ok: true; addresses: string[] } | { ok: false; cause: Cause };

/** What a name server says for certain, or the cause when it did not answer or could not. */
type ServerAnswer = { ok: true; resolution: Resolution } | { ok: false; cause: FailureCause };

/** A name may have thousands, and an attempt connects to each that does not answer. */
const mostAddresses = 8;
/** As many as glibc asks. */
const mostServers = 3;
/**
 * Node looks once a second, so a try ends after 2 s. Two for a name and two for the root end before
 * 10 s; several servers get one for the root.
 */
const tryTimeoutMs = 1_500;
/** How long AAAA may take once A has answered: the delay of RFC 8305, section 3. */
const resolutionDelayMs = 50;

/**
 * Creates a resolver that queries DNS itself (A and AAAA) each time, without a cache.
 *
 * - It does not use `dns.lookup`, which blocks one of libuv's four threads while a name server
 *   hangs, cannot be cancelled, and reads `/etc/hosts` and search domains, which could lead a
 *   public name into the cluster.
 * - The servers of resolv.conf, three at most, are tried in their order, each 250 ms after the one
 *   before, so that a dead one costs an attempt a moment. That a name has no address is believed
 *   of one once those before it have failed: a later one may not know a private zone.
 * - A type that fails while the other has addresses is ignored, and once A has answered, AAAA has
 *   50 ms: some old load balancers never answer it.
 * - Each name has separate channels, which can be cancelled, use random ports (harder to forge
 *   answers to), and read a changed resolv.conf.
 * - When no server answers, and none knows the root's name servers either, it is an internal error:
 *   also when they reject both, or the time is up before all that is known. Otherwise the zone is at
 *   fault.
 */
export function createResolve({ servers }: { servers?: string[] } = {}): Resolve {
  return async (hostname, signal) => {
    const tried = (servers ?? new Resolver().getServers()).slice(0, mostServers);
    const asked: Promise<ServerAnswer>[] = [];
    const askInTurn = (server: string, either: AbortSignal) => {
      const said = afterEarlier(ask(server, hostname, either), [...asked]);
      asked.push(said);
      return said;
    };
    const found = await tryStaggered(tried, askInTurn, signal);
    if (found.success !== null) return found.success.resolution;
    const cause = found.failures.find((each) => each.cause === 'dns_timeout')?.cause ?? 'dns_failed';
    if (signal.aborted) return { ok: false, cause: 'dns_unavailable' };
    const rootTries = tried.length > 1 ? 1 : 2;
    const root = await tryStaggered(tried, (server, either) => askForRoot(server, rootTries, either), signal);
    return { ok: false, cause: root.success === null ? 'dns_unavailable' : cause };
  };
}

/** Resolves with what a server said: addresses at once, and that there are none after the servers before have ended. */
async function afterEarlier(asked: Promise<ServerAnswer>, earlier: Promise<ServerAnswer>[]): Promise<ServerAnswer> {
  const said = await asked;
  if (said.ok && !said.resolution.ok) await Promise.all(earlier);
  return said;
}

/** Asks one server for A and AAAA of a name. */
function ask(server: string, hostname: string, signal: AbortSignal): Promise<ServerAnswer> {
  return withChannel(server, 2, signal, async (channel) => {
    let delay: NodeJS.Timeout | undefined;
    const startDelay = () => {
      delay = setTimeout(() => channel.cancel(), resolutionDelayMs);
    };
    const v4 = channel.resolve4(hostname);
    v4.then(startDelay, () => {});
    const lookups = await Promise.allSettled([v4, channel.resolve6(hostname)]);
    clearTimeout(delay);
    const [ipv4 = [], ipv6 = []] = lookups.map((lookup) => (lookup.status === 'fulfilled' ? lookup.value : []));
    const addresses = Array.from({ length: mostAddresses }, (_, index) => [ipv4[index], ipv6[index]])
      .flat()
      .filter((address) => address !== undefined)
      .slice(0, mostAddresses);
    if (addresses.length > 0) return { ok: true, resolution: { ok: true, addresses } };
    const codes = lookups.map((lookup) => (lookup.status === 'rejected' ? lookup.reason.code : 'ENODATA'));
    const cause = findLookupCause(codes);
    const isCertain = cause === 'dns_no_such_name' || cause === 'dns_no_address';
    return isCertain ? { ok: true, resolution: { ok: false, cause } } : { ok: false, cause };
  });
}

/** Returns whether a server works at all: it knows the root, or that it has no such records. */
function askForRoot(server: string, tries: number, signal: AbortSignal): Promise<{ ok: true } | { ok: false }> {
  return withChannel(server, tries, signal, async (channel) => {
    try {
      await channel.resolveNs('.');
      return { ok: true };
    } catch (error) {
      const { code = '' } = error as NodeJS.ErrnoException;
      return { ok: ['ENOTFOUND', 'ENODATA'].includes(code) };
    }
  });
}

/** Runs queries on a channel to one server, which the signal cancels. */
async function withChannel<Answer>(
  server: string,
  tries: number,
  signal: AbortSignal,
  query: (channel: Resolver) => Promise<Answer>,
): Promise<Answer> {
  const channel = new Resolver({ timeout: tryTimeoutMs, maxTimeout: tryTimeoutMs, tries });
  channel.setServers([server]);
  const cancel = () => channel.cancel();
  signal.addEventListener('abort', cancel, { once: true });
  try {
    return await query(channel);
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}

function findLookupCause(codes: string[]): FailureCause {
  if (codes.includes('ENOTFOUND')) return 'dns_no_such_name'; // a name that does not exist has neither type
  if (codes.every((code) => code === 'ENODATA')) return 'dns_no_address';
  return codes.some((code) => code === 'ETIMEOUT' || code === 'ECANCELLED') ? 'dns_timeout' : 'dns_failed';
}
