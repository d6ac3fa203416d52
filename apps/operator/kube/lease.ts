import { setTimeout as sleep } from 'node:timers/promises';
import { type CoordinationV1Api, type V1Lease, type V1LeaseSpec, V1MicroTime } from '@kubernetes/client-node';
import { endStatementsOn } from '#domain/db/end-statements.ts';
import { nullOn } from './client.ts';

/** The Lease of the replicas of a namespace; the chart's Role names it. */
export const leaseName = 'org-api-operator';

interface LeaseOptions {
  api: CoordinationV1Api;
  namespace: string;
  name: string;
  /** Name of this process, for example its pod's. */
  identity: string;
  /** Leads until the signal is aborted, which ends it also in the middle of an action. */
  lead: (signal: AbortSignal) => Promise<void>;
  onError: (cause: unknown) => void;
  /** After how long without a renewal another process takes over. */
  durationSeconds?: number;
  /**
   * How long this process leads after it sent its last accepted renewal. The duration is longer by
   * the time that an action needs to end.
   */
  renewDeadlineMs?: number;
  retryMs?: number;
}

/**
 * Elects one leader by a Lease, as client-go does: the holder renews it, and another process takes
 * it when it saw no renewal for its duration by its own clock, so that clocks need not agree. The
 * library has no election.
 *
 * A leader stops at a fixed time after it *sent* its last accepted renewal, whatever the next one
 * waits for. Another process counts from when it saw that renewal, which is later, and for longer.
 * `stop` gives the Lease back, so that the other process takes over within a retry. `stop` may be
 * called twice and before `start`.
 */
export function createElection(options: LeaseOptions) {
  const { api, namespace, name, identity, lead, onError } = options;
  const { durationSeconds = 15, renewDeadlineMs = 10_000, retryMs = 2_000 } = options;
  const stopping = new AbortController();
  let loop: Promise<void> | undefined;
  let seen: { version: string; at: number } | null = null;

  /**
   * Takes or renews the Lease. Returns when the write that succeeded was sent; null: another process
   * has it. @throws what its requests throw, also when the signal ends them.
   */
  async function acquire(): Promise<number | null> {
    const lease = await readLease();
    const sentAt = performance.now();
    const isAccepted = await tryWrite(lease);
    return isAccepted ? sentAt : null;
  }

  async function tryWrite(lease: V1Lease | null): Promise<boolean> {
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

  const pause = (signal: AbortSignal) => sleep(retryMs, undefined, { signal }).catch(() => {});

  /** Returns what `acquire` does; undefined when it failed or the signal ended it. */
  async function tryAcquire(signal: AbortSignal): Promise<number | null | undefined> {
    try {
      return await endStatementsOn(signal, acquire);
    } catch (cause) {
      onError(cause);
      return undefined;
    }
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      const acquiredAt = await tryAcquire(AbortSignal.timeout(renewDeadlineMs));
      if (acquiredAt == null) await pause(stopping.signal);
      else if (!stopping.signal.aborted) await leadFrom(acquiredAt);
      if (acquiredAt != null && stopping.signal.aborted) await release();
    }
  }

  async function leadFrom(acquiredAt: number): Promise<void> {
    const ending = new AbortController();
    const end = () => ending.abort();
    const endAfter = (sentAt: number) => setTimeout(end, sentAt + renewDeadlineMs - performance.now());
    const { signal } = ending;
    stopping.signal.addEventListener('abort', end, { once: true });
    let timer = endAfter(acquiredAt);
    const leading = lead(signal);
    while (!signal.aborted) {
      await pause(signal);
      if (signal.aborted) break;
      const renewedAt = await tryAcquire(signal);
      if (renewedAt === null) end();
      if (renewedAt == null) continue;
      clearTimeout(timer);
      timer = endAfter(renewedAt);
    }
    clearTimeout(timer);
    stopping.signal.removeEventListener('abort', end);
    await leading;
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
