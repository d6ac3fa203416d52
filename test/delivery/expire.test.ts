import { randomUUID } from 'node:crypto';
import { expect, it, onTestFinished, vi } from 'vitest';
import { createExpire } from '#delivery/expire.ts';
import { type Run, setupEngine } from '#test/delivery-engine.ts';
import { shareInstallation } from '#test/setup.ts';

const engine = shareInstallation(setupEngine);

function setupExpire(errors: unknown[]) {
  const expire = createExpire({
    pool: engine().worker,
    delaysMs: [1_000, 1_000],
    lateMs: 60_000,
    drainDeleted: () => [],
    onExpired: () => {},
    onUnblocked: () => {},
    onChanged: () => {},
    onError: (error) => void errors.push(error),
  });
  onTestFinished(() => expire.stop());
  return expire;
}

// Regression: one error while Temporal was asked ended all later repairs and the sweep.
it('an error of the repair stops neither the other parts nor the next repair', async () => {
  const lost = await engine().webhook({ events: 1 });
  const [claim] = await engine().claim([lost]);
  await engine().admit(claim as Run);
  await engine().pass([lost], 30);
  const deleted = await engine().webhook({ events: 2 });
  await engine().change(deleted, 'deleted');
  await engine().owner.query(`
    create function fail() returns trigger language plpgsql as $$ begin raise 'no repair'; end $$;
    create trigger fails before delete on slot for each row execute function fail()`);
  const errors: unknown[] = [];
  const expire = setupExpire(errors);

  void expire.start();

  const states = async (hook: typeof lost) => (await engine().deliveries(hook)).map(({ state }) => state);
  await vi.waitFor(async () => expect(await states(deleted)).toEqual(['cancelled', 'cancelled']), { timeout: 20_000 });
  await vi.waitFor(() => expect(errors.length).toBeGreaterThan(1), { timeout: 20_000 });
  expect(await states(lost)).toEqual(['running']);
  await engine().owner.query('drop trigger fails on slot');
  await vi.waitFor(async () => expect(await states(lost)).toEqual(['queued']), { timeout: 20_000 });
  expect(await engine().delivery(lost)).toMatchObject({ failures: 1, attempts: 1, hasAttempt: null });
});

// Regression: it looked up 500 a second, so that 300,000 that wait for ten minutes each were too many.
it('blocked deliveries are looked up in one repair, whatever number of statements that takes', async () => {
  const hook = await engine().webhook();
  await engine().events(hook.organizationId, 1_300, randomUUID());
  const { owner } = engine();
  await owner.query(`update delivery set due_at = now() - interval '1 hour' where state = 'blocked'`);
  const errors: unknown[] = [];

  await setupExpire(errors).start();

  const { rows } = await owner.query(
    `select count(*)::integer as blocked,
       count(*) filter (where due_at > now() - interval '1 minute')::integer as "lookedUp"
     from delivery where state = 'blocked' and webhook_id = $1`,
    [hook.webhookId],
  );
  expect(errors).toEqual([]);
  expect(rows).toEqual([{ blocked: 1_299, lookedUp: expect.any(Number) }]);
  // A repair may end after a second; one statement looks up 500.
  expect(rows[0].lookedUp).toBeGreaterThan(500);
});
