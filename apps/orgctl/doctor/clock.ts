import { createFindings, type Finding } from './finding.ts';

const { expectThat } = createFindings('clock');
/** A code of an authenticator app is accepted for a minute, and receivers accept five. */
const differenceMs = 5_000;

/**
 * Compares this machine's clock with a server's, which `readMs` asks for. The time of the request
 * counts in favor of the server.
 */
export async function checkClock(server: string, readMs: () => Promise<number>): Promise<Finding> {
  const beforeMs = Date.now();
  const serverMs = await readMs();
  const afterMs = Date.now();
  const offMs = serverMs < beforeMs ? beforeMs - serverMs : Math.max(0, serverMs - afterMs);
  return expectThat(
    offMs <= differenceMs,
    `the clocks of ${server} and of this machine agree`,
    `the clocks of ${server} and of this machine differ by ${Math.round(offMs / 1_000)} s`,
    'Synchronize both by NTP: codes of sign-ins, signatures and ends of keys depend on the time.',
  );
}
