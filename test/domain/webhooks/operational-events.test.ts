// cspell:ignore tgenabled
/** Events about webhooks and keys: the same facts as the mails, recorded by maintenance. */
import { describe, expect, it } from 'vitest';
import { changeTypes, eventEnvelope, operationalTypes } from '#domain/contract/events.ts';
import { readLedger } from '#domain/webhooks/ledger.ts';
import { setupDatabase } from '#test/setup.ts';
import { makeSignedInOwner } from '#test/signed-in-owner.ts';

interface Told {
  webhookId: string;
  type: string;
  body: string;
}

async function setUp() {
  const { owner, make, database } = await setupDatabase();
  const { run, orgId, userId } = await makeSignedInOwner({ owner, make });
  const webhook = async (eventTypes: readonly string[] = operationalTypes, of = orgId) => {
    const { id } = await make.webhook({ orgId: of });
    await run('update webhook set event_types = $2 where id = $1', [id, eventTypes]);
    return id;
  };
  return {
    owner,
    make,
    database,
    run,
    orgId,
    userId,
    webhook,
    fail: (id: string, ago = '2 hours') =>
      run(`update receiver set failing_since = now() - $2::interval where webhook_id = $1`, [id, ago]),
    suspend: (id: string, reason: string) =>
      run(`update webhook set state = 'suspended', suspended_reason = $2, state_at = clock_timestamp() where id = $1`, [
        id,
        reason,
      ]),
    /** Returns the id of a key that expires in 13 days. */
    async expiringKey() {
      const { id } = await make.apiKey({
        creator: { orgId, userId, roleId: null },
        expiresAt: new Date(Date.now() + 13 * 86_400_000),
      });
      await run(`update api_key set created_at = now() - interval '1 year', label = 'marker' where id = $1`, [id]);
      return id;
    },
    async record(atMost = 1_000) {
      const [row] = await run<{ recorded: number }>('select record_notices($1) as recorded', [atMost]);
      return row?.recorded;
    },
    told: () =>
      run<Told>(
        `select d.webhook_id as "webhookId", e.type, e.body from delivery d
         join event e on e.organization_id = d.organization_id and e.id = d.event_id order by e.id, d.webhook_id`,
      ),
    unexplained: async () => (await readLedger(owner)).unexplained,
  };
}

describe('an operational event', () => {
  it.each([
    ['webhook.failing', async (t) => t.fail(await t.webhook(['client.started']))],
    ['webhook.suspended', async (t) => t.suspend(await t.webhook(['client.started']), 'gone')],
    ['key.expiring', (t) => t.expiringKey()],
  ] as const satisfies [string, (t: Awaited<ReturnType<typeof setUp>>) => Promise<unknown>][])(
    '%s reaches the webhooks that list it, once, has the form of the contract, and is in the ledger',
    async (type, cause) => {
      const t = await setUp();
      const subscriber = await t.webhook([type]);
      await t.webhook([...changeTypes]);
      await t.webhook([type], await t.make.organization());
      await cause(t);
      expect(await t.record()).toBe(1);
      expect(await t.record()).toBe(0);
      const told = await t.told();
      expect(told.map(({ webhookId }) => webhookId)).toEqual([subscriber]);
      const event: unknown = JSON.parse(told[0]?.body ?? '');
      expect(eventEnvelope(type).strict().parse(event)).toEqual(event);
      expect(await t.run(`select person_id as "personId" from mail where kind = $1`, [type])).toEqual([
        { personId: t.userId },
      ]);
      expect(await t.run('select sum(changes)::integer as changes from ledger_count')).toEqual([{ changes: 1 }]);
      expect(await t.unexplained()).toBe(0);
    },
  );

  it('is not sent to the webhook that it is about', async () => {
    const t = await setUp();
    const [failing, suspended, other] = [await t.webhook(), await t.webhook(), await t.webhook()];
    await t.fail(failing);
    await t.suspend(suspended, 'failures');
    await t.record();
    const about = (await t.told()).map(({ webhookId, body }) => [webhookId, JSON.parse(body).data.webhookId]);
    expect(about).toHaveLength(4);
    expect(about.filter(([told, subject]) => told === subject)).toEqual([]);
    expect(about.filter(([told]) => told === other).map(([, subject]) => subject)).toEqual(
      expect.arrayContaining([failing, suspended]),
    );
  });

  it('comes once a day of a webhook, so 20 that fail and list it get 380 a day, whatever becomes of those', async () => {
    const t = await setUp();
    const hooks = [];
    for (let n = 0; n < 20; n += 1) hooks.push(await t.webhook());
    for (const id of hooks) await t.fail(id);
    for (let minute = 0; minute < 5; minute += 1) {
      await t.record();
      await t.run(`update receiver set failing_since = null`);
      await t.record();
      for (const id of hooks) await t.fail(id);
    }
    expect(await t.told()).toHaveLength(380);
    expect(await t.unexplained()).toBe(0);
  });

  it('is recorded at most so many at a time, and the next run records the rest', async () => {
    const t = await setUp();
    for (let n = 0; n < 5; n += 1) await t.fail(await t.webhook());
    expect([await t.record(2), await t.record(2), await t.record(2), await t.record(2)]).toEqual([2, 2, 1, 0]);
  });

  it('has an event for each suspension, and for none that is older than a week or was ended by a member', async () => {
    const t = await setUp();
    await t.webhook();
    const id = await t.webhook(['client.started']);
    const count = async () => (await t.told()).length;
    const resume = () => t.run(`update webhook set state = 'active', suspended_reason = null where id = $1`, [id]);
    await t.suspend(id, 'failures');
    await t.record();
    await t.record();
    expect(await count()).toBe(1);
    await resume();
    await t.suspend(id, 'gone');
    await t.record();
    expect(await count()).toBe(2);
    await resume();
    await t.run(`update webhook set state = 'paused' where id = $1`, [id]);
    await t.record();
    await t.suspend(id, 'gone');
    await resume();
    await t.record();
    await t.suspend(id, 'gone');
    await t.run(`update webhook set state_at = now() - interval '8 days' where id = $1`, [id]);
    await t.record();
    expect(await count()).toBe(2);
  });

  it('is counted for replicated notices too, and is not in the platform’s view of events', async () => {
    const t = await setUp();
    const triggers = await t.run<{ mode: string }>(
      `select tgenabled as mode from pg_trigger where tgname = 'notice_inserts_counted'`,
    );
    expect(triggers).toEqual([{ mode: 'A' }]);
    await t.webhook();
    await t.fail(await t.webhook(['client.started']));
    await t.record();
    expect(await t.run('select type from event')).toEqual([{ type: 'webhook.failing' }]);
    expect(await t.run('select type from platform.event')).toEqual([]);
  });

  it('is recorded when its mails cannot be written', async () => {
    const t = await setUp();
    const subscriber = await t.webhook();
    await t.fail(await t.webhook(['client.started']));
    await t.run('alter table mail rename to gone');
    expect(await t.record()).toBe(1);
    expect((await t.told()).map(({ webhookId }) => webhookId)).toEqual([subscriber]);
  });

  it('that is missing with its deliveries is unexplained, and so is one whose counter is off', async () => {
    const t = await setUp();
    await t.webhook();
    await t.fail(await t.webhook(['client.started']));
    await t.run('alter table notice disable trigger notice_notifies');
    await t.record();
    expect(await t.unexplained()).toBe(1);
    await t.run('alter table notice enable trigger notice_notifies');
    await t.run('alter table notice disable trigger notice_inserts_counted');
    await t.fail(await t.webhook(['client.started']));
    await t.fail(await t.webhook(['client.started']));
    await t.record();
    expect(Math.abs(await t.unexplained())).toBe(1);
  });

  it('has neither a URL nor a name, nor more of a key than its beginning', async () => {
    const t = await setUp();
    await t.webhook();
    const id = await t.webhook(['client.started']);
    await t.run(`update webhook set url = 'https://marker.example/marker', description = 'marker' where id = $1`, [id]);
    await t.run(`update organization set name = 'marker'`);
    const keyId = await t.expiringKey();
    await t.fail(id);
    await t.record();
    const [{ hint } = { hint: '' }] = await t.run<{ hint: string }>('select hint from api_key where id = $1', [keyId]);
    const bodies = (await t.told()).map(({ body }) => body);
    expect(bodies).toHaveLength(2);
    for (const body of bodies) {
      expect(body).not.toContain('marker');
      expect(body).not.toContain(hint.split('…')[1]);
      expect(body).toMatch(/^[ -~]+$/);
    }
  });
});
