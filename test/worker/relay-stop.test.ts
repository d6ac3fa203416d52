import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { openDatabase } from '#domain/db/connect.ts';
import { setupDatabase } from '#test/setup.ts';
import { type ClaimedDelivery, createRelay } from '../../apps/worker/relay/relay.ts';

const patient = { timeout: 20_000, interval: 20 };
/** Longer than the test: nobody claims what another holds because the time of its lease is over. */
const leaseSeconds = 3_600;

// Once, a relay that was told to stop first started all that it had claimed, and was killed in the middle of it.
describe('a relay that is told to stop', () => {
  it('finishes the start under way, and gives the rest back to whoever claims next', async () => {
    const { openRelay, rows } = await arrange();
    const leaving = await openRelay({ isHeld: true });
    await vi.waitFor(() => expect(leaving.claimed).toBe(30), patient);
    await vi.waitFor(() => expect(leaving.begun).toHaveLength(16), patient); // so many starts at once

    let stopped = false;
    const stopping = leaving.relay.stop().then(() => {
      stopped = true;
    });
    await vi.waitFor(
      async () =>
        expect(await rows('select count(*)::integer as held from delivery where claimed')).toEqual([{ held: 16 }]),
      patient,
    );
    expect(stopped).toBe(false);
    leaving.release();
    await stopping;
    expect(leaving.begun).toHaveLength(16);
    expect(await rows('select count(*)::integer as started from delivery where started')).toEqual([{ started: 16 }]);

    const staying = await openRelay({ isHeld: false });
    await vi.waitFor(() => expect(staying.begun).toHaveLength(14), patient);
    const events = [...leaving.begun, ...staying.begun].map(({ webhookId, eventId }) => `${webhookId}/${eventId}`);
    expect(new Set(events).size).toBe(30);
    // They were numbered by the first claim, and keep their numbers.
    expect(
      await rows(
        'select sequence::integer as sequence, count(*)::integer as count from delivery group by 1 order by 1',
      ),
    ).toEqual([{ sequence: 1, count: 30 }]);
  });

  it('is followed by another one, which claims at once what is given back', async () => {
    const { openRelay } = await arrange();
    const leaving = await openRelay({ isHeld: true });
    await vi.waitFor(() => expect(leaving.claimed).toBe(30), patient);
    const staying = await openRelay({ isHeld: false });
    leaving.release();
    await leaving.relay.stop();
    await vi.waitFor(() => expect(leaving.begun.length + staying.begun.length).toBe(30), patient);
  });

  it('stops all the same when the database is away, and what it held is claimed after its lease', async () => {
    const { openRelay, rows } = await arrange();
    const leaving = await openRelay({ isHeld: true });
    await vi.waitFor(() => expect(leaving.begun).toHaveLength(16), patient);
    await leaving.database.pool.end();
    leaving.release();
    await leaving.relay.stop();
    expect(leaving.errors.length).toBeGreaterThan(0);
    expect(await rows('select count(*)::integer as held from delivery where claimed')).toEqual([{ held: 30 }]);
  });
});

/** Thirty webhooks, fifteen of each of two organizations, each with one delivery that is due. */
async function arrange() {
  const { database, owner, make } = await setupDatabase();
  for (const professional of [await make.member(), await make.member()]) {
    for (let count = 0; count < 15; count += 1)
      await make.webhook({ orgId: professional.orgId, url: 'http://127.0.0.1:9/' });
    await make.grant({ professional });
  }

  async function openRelay({ isHeld }: { isHeld: boolean }) {
    const opened = await openDatabase({ url: database.urls.worker, applicationName: 'test', poolMax: 3 });
    onTestFinished(() => opened.close());
    const { promise, resolve } = Promise.withResolvers<void>();
    if (!isHeld) resolve();
    const begun: ClaimedDelivery[] = [];
    const errors: unknown[] = [];
    const seen = { claimed: 0 };
    const relay = createRelay({
      ...{ pool: opened.pool, leaseSeconds },
      startWorkflow: (delivery) => {
        begun.push(delivery);
        return promise;
      },
      onClaimed: (deliveries) => {
        seen.claimed += deliveries;
      },
      onError: (cause) => void errors.push(cause),
    });
    relay.start();
    onTestFinished(() => relay.stop());
    return Object.assign(seen, { relay, begun, errors, database: opened, release: resolve });
  }
  return { openRelay, rows: async (query: string) => (await owner.pool.query(query)).rows };
}
