import { describe, expect, it } from 'vitest';
import { pauseWebhook } from '#domain/webhooks/park.ts';
import { setupDatabase } from '#test/setup.ts';
import { sweepRunning } from '../../apps/worker/relay/sweep.ts';

const everyMs = 60_000;
type Running = { webhookId: string; eventId: string; round: number; startedAtMs: number };

// Regression: each worker listed every running delivery each minute, so ten workers sent Temporal's
// visibility store the same ten queries.
describe('the sweep of orphaned workflows', () => {
  it('runs on one worker per interval', async () => {
    const { sweep, lists, pool } = await arrange();
    await Promise.all(Array.from({ length: 5 }, () => sweep()));
    expect(lists).toHaveLength(1);
    await sweep();
    expect(lists).toHaveLength(1);

    await pool.query(`update workflow_sweep set due_at = due_at - interval '60 seconds'`);
    await sweep();
    expect(lists).toHaveLength(2);
  });

  it('cancels orphaned workflows, and no others', async () => {
    const { sweep, cancelled, running, park } = await arrange();
    await sweep();
    expect(cancelled).toEqual([]);

    await park();
    await sweep({ isDue: true });
    expect(cancelled.sort()).toEqual(running.map(({ eventId }) => eventId).sort());
  });

  it('scans a bounded number at a time, continues where it stopped, and then restarts', async () => {
    const { sweep, lists, looked } = await arrange();
    const parts: number[][] = [];
    for (let nth = 0; nth < 4; nth += 1) {
      looked.splice(0);
      await sweep({ isDue: true, atMost: 2 });
      parts.push([...looked]);
    }
    // The last workflow of a page is read again, because others may have started in the same
    // millisecond.
    expect(parts).toEqual([
      [5, 4],
      [4, 3],
      [3, 2],
      [2, 1],
    ]);
    await sweep({ isDue: true, atMost: 2 });
    expect(lists.slice(1).every((before, index) => before < (lists[index] ?? 0))).toBe(true);
    await sweep({ isDue: true, atMost: 2 });
    expect(Date.now() - (lists.at(-1) ?? 0)).toBeLessThan(2 * everyMs);
  });

  it('is continued by another worker when its worker stops', async () => {
    const { sweep, lists, looked } = await arrange();
    await sweep({ isDue: true, atMost: 2 });
    await expect(sweep({ isDue: true, fails: true })).rejects.toThrow('Temporal is away');
    looked.splice(0);
    await sweep({ isDue: true, atMost: 10 });
    expect(lists[2]).toBe(lists[1]);
    expect(looked).toEqual([4, 3, 2, 1]);
  });
});

/**
 * Five deliveries whose workflows run, started 1 to 5 minutes after another moment, and a function
 * that sweeps them.
 */
async function arrange() {
  const { owner, make } = await setupDatabase();
  const { pool } = owner;
  const professional = await make.member();
  const orgId = professional.orgId;
  const webhook = await make.webhook({ orgId, url: 'http://127.0.0.1:9/' });
  for (let count = 0; count < 5; count += 1) await make.grant({ professional });
  const { rows } = await pool.query<{ id: string }>('select id from event order by id');
  const beganAtMs = Date.now() - 3_600_000;
  const running: Running[] = rows.map(({ id }, index) => ({
    webhookId: webhook.id,
    eventId: id,
    round: 1,
    startedAtMs: beganAtMs + (index + 1) * 60_000,
  }));
  const lists: number[] = [];
  const looked: number[] = [];
  const cancelled: string[] = [];
  const sweep = async ({ isDue = false, atMost = 100, fails = false } = {}) => {
    if (isDue) await pool.query(`update workflow_sweep set due_at = '-infinity'`);
    return sweepRunning({
      pool,
      everyMs,
      atMost,
      signal: new AbortController().signal,
      async *listRunning(before) {
        lists.push(before.getTime());
        if (fails) throw new Error('Temporal is away');
        for (const round of [...running].reverse().filter(({ startedAtMs }) => startedAtMs < before.getTime())) {
          looked.push((round.startedAtMs - beganAtMs) / 60_000);
          yield round;
        }
      },
      cancel: async ({ eventId }) => void cancelled.push(eventId),
    });
  };
  return {
    pool,
    sweep,
    lists,
    looked,
    cancelled,
    running,
    park: () => pauseWebhook(owner.orm.em, { organizationId: orgId, webhookId: webhook.id, by: 'operator' }),
  };
}
