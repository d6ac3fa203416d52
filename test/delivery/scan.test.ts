import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { Scan } from '#delivery/scan.ts';
import type { QueuedWebhook } from '#delivery/sql/claim.ts';

const listWebhooks = (length: number, state: 'active' | 'paused' = 'active') =>
  Array.from({ length }, () => ({ organizationId: randomUUID(), webhookId: randomUUID(), state, mustWait: false }));

// Thousands of paused webhooks must not delay the others.
it('paused webhooks are passed in one step, also when all are tried', () => {
  const scan = new Scan({ retryAllEveryMs: -1 });
  const paused = listWebhooks(512, 'paused');
  scan.next();

  expect(scan.select(paused)).toEqual([]);
  expect(scan.next()).toBe(paused.at(-1));
});

it('a webhook of which two claims got nothing is skipped, unless those got as many as they might', () => {
  const scan = new Scan({ retryAllEveryMs: 3_600_000 });
  const waiting = listWebhooks(1);
  for (const isAtLimit of [true, true, true]) scan.note(waiting, [], isAtLimit);
  expect(scan.select(waiting)).toEqual(waiting);
  for (const isAtLimit of [false, false]) scan.note(waiting, [], isAtLimit);
  expect(scan.select(waiting)).toEqual([]);
});

// No end of an attempt shows when its bound leaves a post, and half a second would be too late.
it('a webhook whose bound leaves no post is passed, and selected as soon as it leaves one', () => {
  const scan = new Scan({ retryAllEveryMs: 3_600_000 });
  const [bounded, other] = listWebhooks(2);
  const list = (mustWait: boolean) => [bounded, other].flatMap((one) => (one ? { ...one, mustWait } : []));
  const [first, second] = list(false);
  scan.next();
  scan.select(list(false));
  for (const _ of [1, 2]) scan.note(list(false), [], false);
  scan.next();
  expect(scan.select(list(false))).toEqual([]);
  scan.next();
  expect(scan.select([{ ...(first as QueuedWebhook), mustWait: true }, second as QueuedWebhook])).toEqual([]);
  scan.next();
  expect(scan.select(list(false))).toEqual([first]);
});

// While the slots of a process are few, no webhook gets each because it comes first.
it('the first selection after a retry may have any webhook of the page', () => {
  const scan = new Scan({ retryAllEveryMs: 3_600_000 });
  const waiting = listWebhooks(100);
  const first = new Set<string>();
  for (let pass = 0; pass < 100; pass += 1) {
    scan.retry(null);
    for (let steps = 0; steps < 2; steps += 1) {
      scan.next();
      const selected = scan.select(waiting);
      if (steps === 0) for (const { webhookId } of selected) first.add(webhookId);
      scan.note(selected, [], false);
      scan.note(selected, [], false);
    }
    scan.next();
    expect(scan.select(waiting)).toEqual([]); // both steps tried all
  }
  expect(first.size).toBe(100);
});

it('each webhook of a page is selected once before the next page is listed', () => {
  const scan = new Scan({ retryAllEveryMs: 3_600_000 });
  const [page, beginning] = [listWebhooks(512), scan.next()];
  const selected: string[] = [];
  while (scan.next() === beginning) {
    selected.push(...scan.select(page).map(({ webhookId }) => webhookId));
  }
  expect(selected.toSorted()).toEqual(page.map(({ webhookId }) => webhookId).toSorted());
  expect(scan.next()).toBe(page.at(-1));
  scan.select([]);
  expect(scan.next()).toBe(beginning);
});
