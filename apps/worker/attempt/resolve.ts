import { Resolver } from 'node:dns/promises';
import type { FailureCause } from './outcome.ts';

/**
 * All addresses of a name, IPv4 first, or why there are none. A resolver stops asking when `signal`
 * aborts; it never throws.
 */
export type Resolve = (hostname: string, signal: AbortSignal) => Promise<Resolution>;
export type Resolution = { ok: true; addresses: string[] } | { ok: false; cause: FailureCause };

/** Two tries of 1.5 s leave 7 s of the attempt's 10 s to the receiver. */
const tryTimeoutMs = 1_500;
const tries = 2;

/**
 * A resolver that asks DNS itself (A and AAAA), every time, and caches nothing.
 *
 * Decisions (2026-11-20):
 * - Not `dns.lookup`: that blocks one of libuv's four threads for as long as a name server hangs,
 *   so a few dead zones would delay every organization's posts; it cannot be cancelled; and it
 *   obeys `/etc/hosts` and search domains, which could lead a public name into the cluster.
 * - Both record types are waited for, as every answer has to be judged. A type that fails while the
 *   other has addresses does not count: some old load balancers never answer AAAA, and nothing is
 *   connected to but what was judged.
 * - A new channel for each name: it can be cancelled on its own, sends from a port of its own
 *   (harder to forge answers to), and sees a changed resolv.conf.
 * - When a name cannot be resolved for want of an answer, the resolver is asked for the root's name
 *   servers. If it cannot name those either, it is an internal error; otherwise it is the zone's, and a
 *   zone that hangs on purpose uses up its webhook's attempts.
 *
 * `servers` (`address:port`) replaces the system's.
 */
export function createResolve({ servers }: { servers?: string[] } = {}): Resolve {
  return async (hostname, signal) => {
    const resolver = new Resolver({ timeout: tryTimeoutMs, maxTimeout: tryTimeoutMs, tries });
    if (servers !== undefined) resolver.setServers(servers);
    const cancel = () => resolver.cancel();
    signal.addEventListener('abort', cancel, { once: true });
    try {
      const answers = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
      const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
      if (addresses.length > 0) return { ok: true, addresses };
      const cause = causeOfCodes(
        answers.map((answer) => (answer.status === 'rejected' ? answer.reason.code : 'ENODATA')),
      );
      const needsProof = cause === 'dns_failed' || cause === 'dns_timeout';
      if (needsProof && !signal.aborted && !(await knowsRoot(resolver))) return { ok: false, cause: 'dns_unavailable' };
      return { ok: false, cause };
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  };
}

function causeOfCodes(codes: string[]): FailureCause {
  if (codes.includes('ENOTFOUND')) return 'dns_no_such_name'; // a name that does not exist has neither type
  if (codes.every((code) => code === 'ENODATA')) return 'dns_no_address';
  return codes.some((code) => code === 'ETIMEOUT' || code === 'ECANCELLED') ? 'dns_timeout' : 'dns_failed';
}

/** Whether our resolver works at all: any answer to the question but a failure to answer it. */
async function knowsRoot(resolver: Resolver): Promise<boolean> {
  try {
    await resolver.resolveNs('.');
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'ENOTFOUND' || code === 'ENODATA' || code === 'EREFUSED' || code === 'ENOTIMP';
  }
}
