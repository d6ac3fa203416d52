import { setTimeout as wait } from 'node:timers/promises';
import { secondsSince } from '../../apps/dev/servers/process.ts';
import { Random } from '../../apps/import/generate/random.ts';

/** A process that can be killed; `restart` is null when it restarts by itself. */
export interface Victim {
  name: string;
  kill(): Promise<void>;
  restart: (() => Promise<void>) | null;
  /** Whether the ledger cannot be read while it is down. */
  holdsLedger: boolean;
}

/**
 * Returns the order in which victims are killed, `times` each: every victim once per round,
 * shuffled.
 */
function orderOfKills(seed: number, victims: readonly Victim[], times: number): Victim[] {
  return Array.from({ length: times }, (_, round) =>
    victims
      .map((victim) => ({ victim, rank: new Random('kills', seed, round, victim.name).whole(0, 1_000_000) }))
      .sort((a, b) => a.rank - b.rank)
      .map(({ victim }) => victim),
  ).flat();
}

/**
 * Kills one victim after the other with SIGKILL, leaves each down for a moment and restarts it. The
 * next may be killed while the last one still starts. Calls `readLedger` after every restart, and
 * after every kill that leaves the ledger readable.
 * @returns how often each was killed.
 */
export async function causeFaults(options: {
  seed: number;
  victims: readonly Victim[];
  times: number;
  readLedger: (when: string) => Promise<void>;
  report: (line: string) => void;
}): Promise<Record<string, number>> {
  const { seed, victims, times, readLedger, report } = options;
  const startedAt = performance.now();
  const kills: Record<string, number> = {};
  for (const [index, victim] of orderOfKills(seed, victims, times).entries()) {
    const chance = new Random('pause', seed, index);
    await wait(chance.whole(200, 1_200));
    await victim.kill();
    kills[victim.name] = (kills[victim.name] ?? 0) + 1;
    report(`killed ${victim.name} (${secondsSince(startedAt)})`);
    if (!victim.holdsLedger) await readLedger(`${victim.name} was killed (fault ${index + 1})`);
    await wait(chance.whole(0, 1_000));
    if (victim.restart === null) continue;
    await victim.restart();
    await readLedger(`${victim.name} is up again (fault ${index + 1})`);
  }
  return kills;
}
