import type { EventFigures } from './judge.ts';
import type { ReadFigures } from './reads.ts';

/** The results of one region under load. */
export interface RegionFigures {
  region: string;
  reads: ReadFigures;
  events: EventFigures;
}

/** Formats the figures of a run as lines, and lists all problems in them. */
export function describeFigures(figures: readonly RegionFigures[]): { lines: string[]; problems: string[] } {
  const lines: string[] = [];
  const problems: string[] = [];
  for (const { region, reads, events } of figures) {
    lines.push(
      `${region}: ${reads.reads} reads, ${reads.failed} failed ` +
        `(p50 ${reads.p50Ms} ms, p99 ${reads.p99Ms} ms, longest ${reads.maxMs} ms)`,
      `${region}: ${events.events} events, ${events.delivered} delivered, ${events.lost} lost; ` +
        `${events.arrivals} arrivals, ${events.duplicates} duplicates, ${events.unexplained} unexplained; ` +
        `${events.attempts} attempts, ${events.lostAttempts} of them lost; ledger difference ${events.difference}`,
    );
    const wrong: [string, number][] = [
      ['failed reads', reads.failed],
      ['lost events', events.lost],
      ['unexplained duplicates', events.unexplained],
      ['arrivals that did not verify', events.unverified],
      ['ledger difference', events.difference],
      ['undelivered', events.arrivals > 0 ? 0 : 1],
    ];
    for (const [what, count] of wrong) if (count !== 0) problems.push(`${region}: ${what}: ${count}`);
    problems.push(...reads.failures.map((failure) => `${region}: ${failure}`));
  }
  return { lines, problems };
}
