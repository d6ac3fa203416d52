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

it('a webhook of which two claims got nothing is skipped, unless those got as many as they might', () => {
  const scan = createScan({ completeEveryMs: 3_600_000 });
  const waiting = [{ organizationId: randomUUID(), webhookId: randomUUID(), state: 'active' as const }];
  const beginning = scan.next();
  for (const isCut of [true, true, true]) scan.note(waiting, [], isCut);
  expect(scan.select(beginning, waiting)).toEqual(waiting);
  for (const isCut of [false, false]) scan.note(waiting, [], isCut);
  expect(scan.select(beginning, waiting)).toEqual([]);
});
