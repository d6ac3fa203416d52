import { setTimeout as sleep } from 'node:timers/promises';
import { type CoordinationV1Api, type V1Lease, type V1LeaseSpec, V1MicroTime } from '@kubernetes/client-node';
import { runWithSignal } from '#runtime/flow/cancellation.ts';
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
export class Election {
  readonly #options: Required<LeaseOptions>;
  readonly #stopping = new AbortController();
  #loop: Promise<void> | undefined;
  /** The last version of the Lease, and when it was first seen, by this process's clock. */
  #seen: { version: string; at: number } | null = null;

  constructor(options: LeaseOptions) {
    this.#options = { durationSeconds: 15, renewDeadlineMs: 10_000, retryMs: 2_000, ...options };
  }

  start(): void {
    this.#loop ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const acquiredAt = await this.#tryAcquire(AbortSignal.timeout(this.#options.renewDeadlineMs));
      if (acquiredAt == null) await this.#pause(signal);
      else if (!signal.aborted) await this.#leadFrom(acquiredAt);
      if (acquiredAt != null && signal.aborted) await this.#resign();
    }
  }

  async #leadFrom(acquiredAt: number): Promise<void> {
    const { renewDeadlineMs, lead } = this.#options;
    const ending = new AbortController();
    const end = () => ending.abort();
    const endAfter = (sentAt: number) => setTimeout(end, sentAt + renewDeadlineMs - performance.now());
    const { signal } = ending;
    this.#stopping.signal.addEventListener('abort', end, { once: true });
    let timer = endAfter(acquiredAt);
    const leading = lead(signal);
    while (!signal.aborted) {
      await this.#pause(signal);
      if (signal.aborted) break;
      const renewedAt = await this.#tryAcquire(signal);
      if (renewedAt === null) end();
      if (renewedAt == null) continue;
      clearTimeout(timer);
      timer = endAfter(renewedAt);
    }
    clearTimeout(timer);
    this.#stopping.signal.removeEventListener('abort', end);
    await leading;
  }

  /** Returns what `#acquire` does; undefined when it failed or the signal ended it. */
  async #tryAcquire(signal: AbortSignal): Promise<number | null | undefined> {
    try {
      return await runWithSignal(signal, () => this.#acquire());
    } catch (cause) {
      this.#options.onError(cause);
      return undefined;
    }
  }

  /**
   * Takes or renews the Lease. Returns when the write that succeeded was sent; null: another process
   * has it. @throws what its requests throw, also when the signal ends them.
   */
  async #acquire(): Promise<number | null> {
    const lease = await this.#read();
    const sentAt = performance.now();
    return (await this.#tryWrite(lease)) ? sentAt : null;
  }

  async #tryWrite(lease: V1Lease | null): Promise<boolean> {
    const { api, namespace, name, identity, durationSeconds } = this.#options;
    const now = new V1MicroTime();
    const own = { holderIdentity: identity, leaseDurationSeconds: durationSeconds, acquireTime: now, renewTime: now };
    if (lease === null)
      return isAccepted(api.createNamespacedLease({ namespace, body: { metadata: { name }, spec: own } }));
    const { holderIdentity, acquireTime = now, leaseTransitions = 0 } = lease.spec ?? {};
    const version = lease.metadata?.resourceVersion ?? '';
    if (this.#seen?.version !== version) this.#seen = { version, at: performance.now() };
    if (holderIdentity === identity) return this.#replace(lease, { ...own, acquireTime, leaseTransitions });
    if (holderIdentity && performance.now() - this.#seen.at <= durationSeconds * 1_000) return false;
    return this.#replace(lease, { ...own, leaseTransitions: leaseTransitions + 1 });
  }

  async #resign(): Promise<void> {
    const { identity, onError } = this.#options;
    try {
      const lease = await this.#read();
      if (lease?.spec?.holderIdentity === identity) await this.#replace(lease, { ...lease.spec, holderIdentity: '' });
    } catch (cause) {
      onError(cause);
    }
  }

  #read(): Promise<V1Lease | null> {
    const { api, namespace, name } = this.#options;
    return nullOn(404, api.readNamespacedLease({ namespace, name }));
  }

  /** Its resource version makes the API server reject the write of one of two. */
  #replace(lease: V1Lease, spec: V1LeaseSpec): Promise<boolean> {
    const { api, namespace, name } = this.#options;
    return isAccepted(api.replaceNamespacedLease({ namespace, name, body: { ...lease, spec } }));
  }

  #pause(signal: AbortSignal): Promise<void> {
    return sleep(this.#options.retryMs, undefined, { signal }).catch(() => {});
  }
}

const isAccepted = async (write: Promise<V1Lease>): Promise<boolean> => (await nullOn(409, write)) !== null;
