import { quantile } from '../growth/measure.ts';
import type { Sample, TableSample } from './samples.ts';

/** One line of the result. */
export interface Finding {
  what: string;
  /** Measured value divided by its limit. */
  ratio: number;
  limit: number;
  detail: string;
}

export const isMissed = ({ ratio, limit }: Finding): boolean => !(ratio <= limit);

const memoryLimit = 1.1;
const indexLimit = 1.1;
/** Memory and indexes are allocated in pieces; this much more counts as no growth. */
const freeBytes = 1024 ** 2;
/** Share of the run, at its beginning and end, over which memory is taken. */
const windowShare = 0.1;
/** Autovacuum checks a database once a minute; it has two checks. */
const vacuumSeconds = 120;
/** A table with fewer rows has indexes of a few pages. */
const rowsFew = 1_000;

/**
 * Compares the memory of each process at the end with its memory after `warmUpSeconds`. Each is
 * the lower quartile of a tenth of the run, because garbage waits for its collection.
 */
export function judgeMemory(samples: readonly Sample[], warmUpSeconds: number): Finding[] {
  const endSeconds = samples.at(-1)?.atSeconds ?? 0;
  const windowSeconds = (endSeconds - warmUpSeconds) * windowShare;
  const within = (from: number) => samples.filter((s) => s.atSeconds >= from && s.atSeconds <= from + windowSeconds);
  const [first, last] = [within(warmUpSeconds), within(endSeconds - windowSeconds)];
  const names = [...(samples.at(-1)?.memory.keys() ?? [])];
  return names.map((name) => {
    const [before, after] = [first, last].map((some) =>
      quantile(
        some.map((s) => s.memory.get(name) ?? 0),
        0.25,
      ),
    );
    return {
      what: `memory of ${name}`,
      ratio: ((after ?? Number.NaN) - freeBytes) / (before ?? Number.NaN),
      limit: memoryLimit,
      detail: `${toMiB(before)} to ${toMiB(after)} MiB`,
    };
  });
}

/**
 * Compares dead rows with what autovacuum leaves: its threshold, and the rows that the last two
 * minutes changed. Returns the highest ratio of each table.
 */
export function judgeDeadRows(samples: readonly Sample[], warmUpSeconds: number): Finding[] {
  return tableNames(samples).map((name) => {
    const findings = samples
      .filter(({ atSeconds }) => atSeconds >= warmUpSeconds)
      .map((sample) => {
        const { deadRows, changedRows, vacuumFrom } = tableOf(sample, name);
        const earlier = samples.findLast(({ atSeconds }) => atSeconds <= sample.atSeconds - vacuumSeconds);
        const allowed = vacuumFrom + changedRows - (earlier === undefined ? 0 : tableOf(earlier, name).changedRows);
        return {
          what: `dead rows of ${name}`,
          ratio: deadRows / allowed,
          limit: 1,
          detail: `${deadRows} of at most ${Math.round(allowed)}`,
        };
      });
    return findings.reduce((worst, each) => (each.ratio > worst.ratio ? each : worst));
  });
}

/**
 * Compares the indexes of each table at the end with their size after `warmUpSeconds`, multiplied
 * by the growth of its rows. Dead rows that autovacuum leaves count as rows, and 1 MiB is free.
 */
export function judgeIndexes(samples: readonly Sample[], warmUpSeconds: number): Finding[] {
  const first = samples.find(({ atSeconds }) => atSeconds >= warmUpSeconds) as Sample;
  const last = samples.at(-1) as Sample;
  const withIndexes = tableNames(samples).filter((name) => tableOf(last, name).indexBytes > 0);
  return withIndexes.map((name) => {
    const [before, after] = [tableOf(first, name), tableOf(last, name)];
    const grown = Math.max(1, (after.liveRows + after.vacuumFrom) / Math.max(before.liveRows, rowsFew));
    return {
      what: `indexes of ${name}`,
      ratio: Math.max(0, after.indexBytes - freeBytes) / Math.max(before.indexBytes * grown, freeBytes),
      limit: indexLimit,
      detail:
        `${toMiB(before.indexBytes)} to ${toMiB(after.indexBytes)} MiB, ` +
        `${before.liveRows} to ${after.liveRows} rows`,
    };
  });
}

const toMiB = (bytes = Number.NaN) => (bytes / 1024 ** 2).toFixed(1);

const tableNames = (samples: readonly Sample[]) => [...(samples.at(-1)?.tables.keys() ?? [])];

function tableOf(sample: Sample, name: string): TableSample {
  return sample.tables.get(name) ?? { name, liveRows: 0, deadRows: 0, indexBytes: 0, changedRows: 0, vacuumFrom: 0 };
}
