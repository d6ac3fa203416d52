import { setTimeout as sleep } from 'node:timers/promises';
import { type CoordinationV1Api, type V1Lease, type V1LeaseSpec, V1MicroTime } from '@kubernetes/client-node';
import { nullOn } from '../null-on.ts';

interface LeaseOptions {
  api: CoordinationV1Api;
  namespace: string;
  name: string;
  /** Name of this process, for example its pod's. */
  identity: string;
  /** Leads until the signal is aborted, and resolves when it has stopped. */
  lead: (signal: AbortSignal) => Promise<void>;
  onError: (cause: unknown) => void;
  /** After how long without a renewal another process takes over. */
  durationSeconds?: number;
  /** Time without a successful renewal after which this process stops; below the duration. */
  renewDeadlineMs?: number;
  retryMs?: number;
}

/**
 * Elects one leader by a Lease, as client-go does: the holder renews it, and another process takes
 * it when it saw no renewal for its duration by its own clock, so that clocks need not agree. The
 * library has no election.
 *
 * A leader that cannot renew stops before another may start. `stop` gives the Lease back, so that
 * the other process takes over within a retry. `stop` may be called twice and before `start`.
 */
export function createElection(options: LeaseOptions) {
  const { api, namespace, name, identity, lead, onError } = options;
  const { durationSeconds = 15, renewDeadlineMs = 10_000, retryMs = 2_000 } = options;
  const stopping = new AbortController();
  let loop: Promise<void> | undefined;
  let seen: { version: string; at: number } | null = null;

  /** Takes or renews the Lease. Returns whether this process has it. */
  async function tryAcquire(): Promise<boolean> {
    const lease = await readLease();
    const now = new V1MicroTime();
    const held = { holderIdentity: identity, leaseDurationSeconds: durationSeconds, acquireTime: now, renewTime: now };
    if (lease === null)
      return isAccepted(api.createNamespacedLease({ namespace, body: { metadata: { name }, spec: held } }));
    const { holderIdentity, acquireTime = now, leaseTransitions = 0 } = lease.spec ?? {};
    const version = lease.metadata?.resourceVersion ?? '';
    if (seen?.version !== version) seen = { version, at: performance.now() };
    if (holderIdentity === identity) return replaceLease(lease, { ...held, acquireTime, leaseTransitions });
    if (holderIdentity && performance.now() - seen.at <= durationSeconds * 1_000) return false;
    return replaceLease(lease, { ...held, leaseTransitions: leaseTransitions + 1 });
  }

  const readLease = () => nullOn(404, api.readNamespacedLease({ namespace, name }));

  /** Its resource version makes the API server refuse the write of one of two. */
  const replaceLease = (lease: V1Lease, spec: V1LeaseSpec) =>
    isAccepted(api.replaceNamespacedLease({ namespace, name, body: { ...lease, spec } }));

  const isAccepted = async (write: Promise<V1Lease>): Promise<boolean> => (await nullOn(409, write)) !== null;

  const pause = () => sleep(retryMs, undefined, { signal: stopping.signal }).catch(() => {});

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      const isAcquired = await tryAcquire().catch((cause: unknown) => {
        onError(cause);
        return false;
      });
      if (isAcquired && !stopping.signal.aborted) await leadWhileRenewed();
      else await pause();
    }
  }

  async function leadWhileRenewed(): Promise<void> {
    const ended = new AbortController();
    const leading = lead(ended.signal);
    let renewedAt = performance.now();
    while (!stopping.signal.aborted && performance.now() - renewedAt < renewDeadlineMs) {
      await pause();
      if (stopping.signal.aborted) break;
      try {
        if (!(await tryAcquire())) break; // another process has it
        renewedAt = performance.now();
      } catch (cause) {
        onError(cause);
      }
    }
    ended.abort();
    await leading;
    if (stopping.signal.aborted) await release();
  }

  async function release(): Promise<void> {
    try {
      const lease = await readLease();
      if (lease?.spec?.holderIdentity === identity) await replaceLease(lease, { ...lease.spec, holderIdentity: '' });
    } catch (cause) {
      onError(cause);
    }
  }

  return {
    start(): void {
      loop ??= run();
    },
    async stop(): Promise<void> {
      stopping.abort();
      await loop;
    },
  };
}
