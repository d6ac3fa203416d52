import { networkOf } from '#domain/identity/network.ts';

/**
 * How many addresses are remembered; when more fail within a minute, the oldest are dropped first.
 * About 10 MB.
 */
const maxAddresses = 50_000;

interface Minute {
  startedAtMs: number;
  failures: number;
}

/**
 * Counts failed authentications per address and minute, in this process. Above the limit, the
 * address's further failures are refused with 429 without I/O; a valid key is never affected. An
 * IPv6 client has a whole /64 network, which counts as one address.
 */
export function createFailedAuthentications(options: { perMinute: number; now?: () => number }) {
  const { perMinute, now = () => performance.now() } = options;
  const minutes = new Map<string, Minute>();

  return {
    /**
     * Counts a failure. Returns null while the address is within the limit, else the whole seconds
     * until its minute ends.
     */
    count(address: string | null): number | null {
      const at = now();
      const network = networkOf(address ?? 'unknown');
      const minute = minutes.get(network);
      if (minute === undefined || at - minute.startedAtMs >= 60_000) {
        minutes.delete(network);
        if (minutes.size >= maxAddresses) minutes.delete(minutes.keys().next().value ?? '');
        minutes.set(network, { startedAtMs: at, failures: 1 });
        return null;
      }
      minute.failures += 1;
      return minute.failures > perMinute ? Math.max(1, Math.ceil((minute.startedAtMs + 60_000 - at) / 1000)) : null;
    },
  };
}

export type FailedAuthentications = ReturnType<typeof createFailedAuthentications>;
