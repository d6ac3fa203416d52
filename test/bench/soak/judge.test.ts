/** The limits of the soak: values at a limit pass, and values above it fail. */
import { describe, expect, it } from 'vitest';
import { isMissed, judgeDeadRows, judgeIndexes, judgeMemory } from './judge.ts';
import type { Sample, TableSample } from './samples.ts';

const mebibyte = 1024 ** 2;
const warmUpSeconds = 120;
const table: TableSample = {
  name: 'delivery',
  liveRows: 10_000,
  deadRows: 0,
  indexBytes: 100 * mebibyte,
  changedRows: 0,
  vacuumFrom: 1_000,
};

/** Samples of 20 minutes, one every 10 s, with the memory and the table of each moment. */
const day = (memoryAt: (seconds: number) => number, tableAt: (seconds: number) => Partial<TableSample> = () => ({})) =>
  Array.from({ length: 121 }, (_, nth): Sample => {
    const atSeconds = nth * 10;
    return {
      atSeconds,
      memory: new Map([['worker 1', memoryAt(atSeconds) * mebibyte]]),
      tables: new Map([['delivery', { ...table, ...tableAt(atSeconds) }]]),
    };
  });
const missed = (findings: ReturnType<typeof judgeMemory>) => findings.filter(isMissed).map(({ what }) => what);

describe('the soak', () => {
  it('accepts memory that grows by a tenth after two minutes, and reports more', () => {
    const growing = (toMiB: number) => day((seconds) => (seconds <= 250 ? 200 : toMiB));

    expect(missed(judgeMemory(growing(220), warmUpSeconds))).toEqual([]);
    expect(missed(judgeMemory(growing(222), warmUpSeconds))).toEqual(['memory of worker 1']);
  });

  it('ignores memory before two minutes, and single high values, which are garbage', () => {
    const peaks = day((seconds) => (seconds % 30 === 0 ? 400 : seconds < 120 ? 100 : 200));

    expect(missed(judgeMemory(peaks, warmUpSeconds))).toEqual([]);
  });

  it('accepts the dead rows below the threshold of autovacuum and those of two minutes, and reports more', () => {
    const dead = (deadRows: number) =>
      day(
        () => 200,
        (seconds) => ({ deadRows: seconds === 600 ? deadRows : 0, changedRows: seconds * 10 }),
      );

    expect(missed(judgeDeadRows(dead(2_200), warmUpSeconds))).toEqual([]);
    expect(missed(judgeDeadRows(dead(2_201), warmUpSeconds))).toEqual(['dead rows of delivery']);
  });

  it('accepts indexes that grow with their rows, and reports indexes that grow alone', () => {
    const grown = (indexMiB: number, liveRows: number) =>
      day(
        () => 200,
        (seconds) => (seconds < 1_200 ? {} : { indexBytes: indexMiB * mebibyte, liveRows }),
      );

    expect(missed(judgeIndexes(grown(200, 20_000), warmUpSeconds))).toEqual([]);
    expect(missed(judgeIndexes(grown(200, 10_000), warmUpSeconds))).toEqual(['indexes of delivery']);
  });
});
