import { describe, expect, it } from 'vitest';
import {
  defaultDelaysMs,
  parseSchedule,
  waitAfterInternalErrorMs,
  waitForSlotMs,
} from '../../workflows/deliver-event/schedule.ts';

describe('the schedule', () => {
  it('is thirteen attempts in about 72 hours', () => {
    expect(defaultDelaysMs).toEqual(parseSchedule('5s,30s,5m,15m,30m,1h,2h,4h,8h,12h,20h,24h'));
    const hours = defaultDelaysMs.reduce((sum, delayMs) => sum + delayMs, 0) / 3_600_000;
    expect(hours).toBeGreaterThan(71.5);
    expect(hours).toBeLessThanOrEqual(72);
  });

  it('is read from waits with units, and a malformed one is refused with an example', () => {
    expect(parseSchedule('100ms, 2s,3m,48h')).toEqual([100, 2_000, 180_000, 172_800_000]);
    for (const text of ['', '5', '5s,', '0s', '49h', '-1s', '1.5s', Array(51).fill('1s').join()]) {
      expect(() => parseSchedule(text), text).toThrow('must be waits separated by commas');
    }
  });
});

describe('the wait after an internal error', () => {
  it('is 15 s, doubles each time up to 10 minutes, with up to a tenth more', () => {
    const waits = [0, 1, 2, 3, 4, 5, 6, 7, 5_000].map((before) => waitAfterInternalErrorMs(before, 0));
    expect(waits).toEqual([15, 30, 60, 120, 240, 480, 600, 600, 600].map((seconds) => seconds * 1_000));
    expect(waitAfterInternalErrorMs(0, 1)).toBe(16_500);
    expect(waitAfterInternalErrorMs(9, 0.5)).toBe(630_000);
  });
});

describe('the wait for a slot', () => {
  it('is a second while an attempt that holds a slot may end at once, or when nothing is known of them', () => {
    const queues = [null, { slots: 10, underWayMs: null, ahead: 3 }, { slots: 1, underWayMs: 999, ahead: 40 }];
    expect(queues.map(waitForSlotMs)).toEqual([1_000, 1_000, 1_000]);
  });

  it('is until its turn behind a receiver that hangs: eleven seconds for each, a minute at most', () => {
    const waits = (slots: number) =>
      [0, 1, 4, 5, 10].map((ahead) => waitForSlotMs({ slots, underWayMs: 3_000, ahead }));
    expect(waits(1)).toEqual([8_000, 19_000, 52_000, 60_000, 60_000]);
    expect(waits(5)).toEqual([8_000, 8_000, 8_000, 19_000, 30_000]);
    expect(waitForSlotMs({ slots: 1, underWayMs: 30_000, ahead: 0 })).toBe(1_000);
  });
});
