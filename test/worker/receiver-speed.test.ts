import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { openDatabase } from '#domain/db/connect.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { setupDatabase } from '#test/setup.ts';
import { createReceiverSpeed } from '../../apps/worker/receiver-speed.ts';

describe('the queue of a webhook whose receiver accepts everything', () => {
  it('is the slow one from its second response after 9 s on, and the prompt one again once responses are fast', async () => {
    const { take, slowSince } = await arrange();
    await take(9_000, 1);
    expect(await slowSince()).toBeNull();
    await take(9_000, 1);
    expect(await slowSince()).not.toBeNull();

    await take(20, 5);
    expect(await slowSince()).not.toBeNull(); // five fast answers may be chance
    await take(20, 10);
    expect(await slowSince()).toBeNull();
  });

  it('stays the prompt one after a single response that took 10 s', async () => {
    const { take, slowSince } = await arrange();
    await take(20, 5);
    await take(10_000, 1);
    await take(20, 1);
    expect(await slowSince()).toBeNull();
  });

  it('is the slow one while two attempts in a row wait for more than 3 s, ended or not', async () => {
    const { take, waitFor3Seconds, slowSince } = await arrange();
    const endOne = waitFor3Seconds(1);
    expect(await slowSince()).toBeNull(); // one slow answer may be chance
    await endOne();
    const endBoth = waitFor3Seconds(2);
    await expect.poll(slowSince).not.toBeNull();
    await endBoth();
    await take(20, 20);
    expect(await slowSince()).toBeNull();

    await take(9_000, 1);
    expect(await slowSince()).toBeNull();
    const endNext = waitFor3Seconds(1);
    await expect.poll(slowSince).not.toBeNull();
    await endNext();
  });

  it('costs no update of the webhook’s row while it is unchanged', async () => {
    const { take, version } = await arrange();
    const before = await version();
    await take(20, 20);
    expect(await version()).toBe(before);
    await take(9_000, 20);
    const slow = await version();
    expect(slow).not.toBe(before);
    await take(9_000, 20);
    expect(await version()).toBe(slow);
  });
});

async function arrange() {
  const { database, owner, make } = await setupDatabase();
  const { id, orgId } = await make.webhook({ orgId: await make.organization(), url: 'http://127.0.0.1:9/' });
  const opened = await openDatabase({
    server: parsePostgresUrl(database.urls.worker),
    applicationName: 'test',
    poolMax: 1,
  });
  onTestFinished(() => opened.close());
  const errors: unknown[] = [];
  const speed = createReceiverSpeed({ pool: opened.pool, onError: (cause) => errors.push(cause) });
  const one = async <Row>(query: string) => (await owner.pool.query(query)).rows[0] as Row;
  return {
    /** Starts attempts that wait 3 s for an answer; returns a function that ends them. */
    waitFor3Seconds(attempts: number): () => Promise<void> {
      const answer = Promise.withResolvers<void>();
      vi.useFakeTimers({ toFake: ['setTimeout'] });
      const underWay = Array.from({ length: attempts }, () =>
        speed.watch({ organizationId: orgId, webhookId: id }, () => answer.promise),
      );
      vi.advanceTimersByTime(3_000);
      vi.useRealTimers();
      return async () => {
        answer.resolve();
        await Promise.all(underWay);
      };
    },
    async take(ms: number, times: number): Promise<void> {
      for (let nth = 0; nth < times; nth += 1) await speed.record({ organizationId: orgId, webhookId: id }, ms);
      expect(errors).toEqual([]);
    },
    slowSince: async () => (await one<{ slow_since: Date | null }>('select slow_since from webhook')).slow_since,
    version: async () => (await one<{ version: string }>('select ctid::text as version from webhook')).version,
  };
}
