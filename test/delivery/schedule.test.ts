import { describe, expect, it } from 'vitest';
import { waitAfterFailureMs, waitAfterInternalErrorMs } from '#delivery/schedule.ts';
import { defaultDelaysMs, parseSchedule } from '../../apps/worker/schedule-setting.ts';

describe('the schedule', () => {
  it('is thirteen attempts in about 72 hours', () => {
    expect(defaultDelaysMs).toEqual(parseSchedule('5s,30s,5m,15m,30m,1h,2h,4h,8h,12h,20h,24h'));
    const hours = defaultDelaysMs.reduce((sum, delayMs) => sum + delayMs, 0) / 3_600_000;
    expect(hours).toBeGreaterThan(71.5);
    expect(hours).toBeLessThanOrEqual(72);
  });

  it('is read from waits with units, and a malformed one is rejected with an example', () => {
    expect(parseSchedule('100ms, 2s,3m,48h')).toEqual([100, 2_000, 180_000, 172_800_000]);
    for (const text of ['', '5', '5s,', '0s', '49h', '-1s', '1.5s', Array(51).fill('1s').join()]) {
      expect(() => parseSchedule(text), text).toThrow('must be waits separated by commas');
    }
  });
});

describe('the wait after an internal error', () => {
  it('is 15 s, or 2 s without PostgreSQL, doubles each time up to 10 minutes, with up to a tenth more', () => {
    const waits = [0, 1, 2, 3, 4, 5, 6, 7, 5_000].map((before) => waitAfterInternalErrorMs('internal', before, 0));
    expect(waits).toEqual([15, 30, 60, 120, 240, 480, 600, 600, 600].map((seconds) => seconds * 1_000));
    expect(waitAfterInternalErrorMs('internal', 0, 1)).toBe(16_500);
    expect(waitAfterInternalErrorMs('internal', 9, 0.5)).toBe(630_000);
    expect([0, 1, 20].map((before) => waitAfterInternalErrorMs('unavailable', before, 0))).toEqual([
      2_000, 4_000, 600_000,
    ]);
  });
});

describe('the wait after a failure', () => {
  it('is the one of the schedule with up to a tenth more, and the last one after a lost last attempt', () => {
    const waits = [0, 1, 2, 3].map((failures) => waitAfterFailureMs([1_000, 2_000], failures, 0));
    expect(waits).toEqual([1_000, 2_000, 2_000, 2_000]);
    expect(waitAfterFailureMs([1_000], 0, 1)).toBe(1_100);
  });
});
