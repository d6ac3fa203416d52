import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { createScan } from '#delivery/scan.ts';

// Regression: passes that try every webhook listed 64 in each step, so 2,000 paused ones delayed others by a second.
it('paused webhooks are passed in one step, also when all are tried', () => {
  const scan = createScan({ completeEveryMs: -1 });
  const paused = Array.from({ length: 500 }, () => ({
    organizationId: randomUUID(),
    webhookId: randomUUID(),
    state: 'paused' as const,
  }));
  const beginning = scan.next();
  const selected = scan.select(beginning, paused);

  scan.advance(paused, selected);

  expect(selected).toEqual([]);
  expect(scan.next()).toBe(beginning);
});
