import { expect, it, onTestFinished, vi } from 'vitest';
import { createRepairLoop } from '#delivery/repair.ts';
import { blockedPerPage, type UnblockedRow, unblockSql } from '#delivery/sql/unblock.ts';
import { type Hook, type Run, setupEngine } from '#test/delivery-engine.ts';
import { shareInstallation } from '#test/setup.ts';

const engine = shareInstallation(setupEngine);

function setupRepair(errors: unknown[]) {
  const repair = createRepairLoop({
    pool: engine().worker,
    delaysMs: [1_000, 1_000],
    lateMs: 60_000,
    drainDeleted: () => [],
    onRepaired: () => {},
    onUnblocked: () => {},
    onChanged: () => {},
    onError: (error) => void errors.push(error),
  });
  onTestFinished(() => repair.stop());
  return repair;
}

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
  const repair = setupRepair(errors);

  void repair.start();

  const states = async (hook: typeof lost) => (await engine().deliveries(hook)).map(({ state }) => state);
  await vi.waitFor(async () => expect(await states(deleted)).toEqual(['cancelled', 'cancelled']), { timeout: 20_000 });
  await vi.waitFor(() => expect(errors.length).toBeGreaterThan(1), { timeout: 20_000 });
  expect(await states(lost)).toEqual(['running']);
  await engine().owner.query('drop trigger fails on slot');
  await vi.waitFor(async () => expect(await states(lost)).toEqual(['queued']), { timeout: 20_000 });
  expect(await engine().delivery(lost)).toMatchObject({ failures: 1, attempts: 1, hasAttempt: null });
});

it('what waited when order was turned off is put into the queue, however much it is', async () => {
  const hook = await manyBlocked();
  await engine().owner.query('update webhook set ordered = false where id = $1', [hook.webhookId]);
  const errors: unknown[] = [];

  void setupRepair(errors).start();

  await vi.waitFor(async () => expect(await countBlocked(hook)).toBe(0), { timeout: 20_000 });
  expect(errors).toEqual([]);
});

it('another webhook need not wait for the next second when one has pages of deliveries that wait', async () => {
  await manyBlocked();
  const hook = await freeAfterOthers();

  await setupRepair([]).start();

  expect(await countBlocked(hook)).toBe(0);
});

it('all that wait of a webhook that is not active take one page', async () => {
  const paused = await manyBlocked();
  await engine().change(paused, 'paused');
  const hook = await freeAfterOthers();

  const before = [paused.webhookId, '00000000-0000-0000-0000-000000000000'];
  const [first] = (await engine().worker.query<UnblockedRow>(unblockSql, before)).rows;
  expect(first).toMatchObject({ unblocked: 0, last: [paused.webhookId, expect.any(String)] });
  await engine().worker.query(unblockSql, first?.last as string[]);

  expect(await countBlocked(hook)).toBe(0);
});

it('blocked deliveries are looked up page by page and again, and those that wait are not written', async () => {
  const hook = await manyBlocked();
  const { owner } = engine();
  const waiting = async () => {
    const { rows } = await owner.query(
      `select event_id, xmin::text from delivery where state = 'blocked' and webhook_id = $1 order by event_id`,
      [hook.webhookId],
    );
    return rows;
  };
  const before = await waiting();
  const errors: unknown[] = [];
  void setupRepair(errors).start();
  // The last one of all pages, and afterwards, with a lower id, one of the first page.
  for (const id of ['ffffffff-ffff-7fff-bfff-ffffffffffff', '00000000-0000-7000-8000-000000000000']) {
    await owner.query(
      `with made as (insert into event (organization_id, id, type, created_at, body, delivery_count)
         values ($1, $3, 'seat.given', now(), '{}', 1) returning id)
       insert into delivery (organization_id, webhook_id, event_id, subject_id, state, due_at, created_at)
       select $1, $2, id, new_id(), 'blocked', now(), now() from made`,
      [hook.organizationId, hook.webhookId, id],
    );
    await vi.waitFor(
      async () => {
        const { rows } = await owner.query('select state from delivery where event_id = $1', [id]);
        expect(rows).toEqual([{ state: 'queued' }]);
      },
      { timeout: 20_000 },
    );
  }

  expect(errors).toEqual([]);
  expect(await waiting()).toEqual(before);
});

/** Makes a webhook, which is looked up after those before, with a blocked delivery that nothing holds back. */
async function freeAfterOthers(): Promise<Hook> {
  const hook = await engine().webhook();
  await engine().owner.query(
    `select record_event($1, 'seat.given', '{}', s.id) from new_id() s (id), generate_series(1, 2)`,
    [hook.organizationId],
  );
  expect(await countBlocked(hook)).toBe(1);
  await engine().owner.query('update webhook set ordered = false where id = $1', [hook.webhookId]);
  return hook;
}

/** Makes a webhook with more blocked deliveries than two statements look up. */
async function manyBlocked() {
  const hook = await engine().webhook();
  const events = 2 * blockedPerPage + 2;
  await engine().owner.query(
    `select record_event($1, 'seat.given', '{}', s.id) from new_id() s (id), generate_series(1, $2)`,
    [hook.organizationId, events],
  );
  expect(await countBlocked(hook)).toBe(events - 1);
  return hook;
}

async function countBlocked({ webhookId }: Hook): Promise<number> {
  const { rows } = await engine().owner.query(
    `select count(*)::integer as blocked from delivery where state = 'blocked' and webhook_id = $1`,
    [webhookId],
  );
  return rows[0].blocked;
}
