import { expect, it } from 'vitest';
import { workerEnvironment } from '#test/worker.ts';
import { readConfig } from '../../../apps/worker/config.ts';
import { defaultSchedule, longestScheduleMs, parseSchedule } from '../../../apps/worker/schedule-setting.ts';
import { setupWebhooks } from './subscriptions.ts';

it('SUSPEND_AFTER is longer than the schedule by default, and is rejected when it is shorter', async () => {
  const t = await setupWebhooks();
  const read = (settings: Record<string, string>) =>
    readConfig(workerEnvironment(t.database, settings)).suspendAfterSeconds;
  const longestSeconds = longestScheduleMs(parseSchedule(defaultSchedule)) / 1_000;
  expect(read({}) - longestSeconds).toBeGreaterThan(3_600);
  expect(Math.round(read({}) / 3_600)).toBe(83);
  expect(read({ SUSPEND_AFTER: '5d' })).toBe(5 * 86_400);
  expect(read({ DELIVERY_SCHEDULE: '1s,2s', SUSPEND_AFTER: '10s' })).toBe(10);
  for (const rejected of ['72h', '0d', 'never', '84']) {
    expect(() => read({ SUSPEND_AFTER: rejected }), rejected).toThrow(/SUSPEND_AFTER.* must be/);
  }
});
