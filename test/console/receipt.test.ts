/** The receipt of ended access over HTTP. */
import { expect, it, vi } from 'vitest';
import { endDueGrantsSql } from '#domain/clients/due-grants.ts';
import { rollUpLedger } from '#domain/webhooks/ledger.ts';
import { purgeDeliveriesSql } from '#domain/webhooks/retention.ts';
import { unescaped } from '#test/http-visitor.ts';
import type { MadeAttempt } from '#test/make.ts';
import { openAs } from '#test/webhook-rows.ts';
import { shareConsole } from './setup.ts';

const shared = shareConsole();

/** The page as text: no markup, single spaces. */
const readText = (page: string): string =>
  unescaped(page.slice(page.indexOf('<main')).replace(/<[^>]*>/g, ' ')).replace(/\s+/g, ' ');

const endNow = `update client_grant set status = 'ended', end_reason = 'moved', ends_at = now() - interval '1 hour'
  where id = $1`;

/** An organization whose client has one webhook of each name. */
async function setupReceipt(names: readonly string[]) {
  const t = shared();
  const orgId = await t.make.organization();
  const ada = await t.enrol({ orgId });
  const bo = await t.make.member({ orgId, name: 'Bo Lindqvist', roleKey: 'member' });
  const familyId = await t.make.family({ orgId, name: 'Rossi family' });
  const grant = await t.make.grant({ professional: bo, familyId });
  const hooks: Record<string, { id: string; orgId: string }> = {};
  for (const name of names) {
    const url = `https://${name}.example.com/token`;
    hooks[name] = await t.make.webhook({ orgId, url, description: '', eventTypes: ['client.ended'] });
  }
  const query = async (text: string, values: unknown[] = []) => (await t.owner.pool.query(text, values)).rows;
  return {
    ...t,
    orgId,
    ada,
    bo,
    grant,
    hooks,
    query,
    path: `/o/${orgId}/clients/${grant.id}`,
    async end(): Promise<string> {
      await query(endNow, [grant.id]);
      const [event] = await query(`select id from event where type = 'client.ended' and subject_id = $1`, [grant.id]);
      return event.id;
    },
    read: async (path: string, who = ada) => readText((await t.http(who).get(path)).text),
  };
}

it('says of each receiver what was recorded, and what follows, in words', async () => {
  const t = await setupReceipt(['accepts', 'fails', 'retries', 'lost', 'paused', 'deleted', 'cancelled', 'trying']);
  const eventId = await t.end();
  const set = (name: string, state: 'running' | 'delivered' | 'exhausted' | 'cancelled') =>
    t.query(
      `update delivery set state = $2, run = 1, due_at = case $2 when 'running' then now() + interval '5 minutes' end,
         settled_at = case when $2 <> 'running' then now() end, attempts = (select count(*) from delivery_attempt a
           where a.webhook_id = $1 and a.finished_at is not null)
       where webhook_id = $1`,
      [t.hooks[name]?.id, state],
    );
  const attempt = async (name: string, ...given: MadeAttempt[]) => {
    const webhook = t.hooks[name] ?? { id: '', orgId: '' };
    for (const each of given)
      await t.make.attempt({ webhook, eventId, startedAt: new Date('2026-11-01T12:00:00Z'), ...each });
  };
  const lost = { status: null, cause: 'lost' };
  const again = { status: 200, startedAt: new Date('2026-11-01T12:05:00Z') };
  await attempt('accepts', lost, { status: 202, timings: { total: 1_500 } }, again);
  await attempt('fails', { status: 500 }, { status: 503 });
  await attempt('retries', { status: 500 });
  await attempt('lost', lost, lost);
  await attempt('trying', { status: null, finishedAt: null });
  await set('accepts', 'delivered');
  await set('fails', 'exhausted');
  for (const name of ['retries', 'lost', 'trying']) await set(name, 'running');
  for (const name of ['deleted', 'cancelled']) await set(name, 'cancelled');
  await t.query(`update webhook set state = 'paused' where id = $1`, [t.hooks.paused?.id]);
  await t.query(`update webhook set state = 'deleted', number = null where id = $1`, [t.hooks.deleted?.id]);

  // The registered name, not what the members read.
  await t.query(`insert into organization_setting (organization_id, display_name) values ($1, 'The lawyers')`, [
    t.orgId,
  ]);
  const text = await t.read(`${t.path}/receipt`);
  expect(text).toContain('Organization Harbor Family Law');
  expect(text).toMatch(/Client Rossi family Professional Bo Lindqvist .* Reason Moved to a colleague/);
  expect(text).toContain('1 of 8 receiving systems confirmed receipt of the notification ( client.ended ).');
  const next = /Next attempt at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC ?\./.source;
  const rows = {
    accepts: /Acknowledged 2026-11-01 12:00:01 UTC The receiving system confirmed receipt \(HTTP 202\)\./,
    fails: /Not acknowledged – 2 attempts without a confirmation\. No further attempt\./,
    retries: new RegExp(`Not yet – 1 attempt without a confirmation\\. ${next}`),
    lost: new RegExp(
      `Response unknown – 2 attempts were interrupted before the response was recorded\\. The receiver may ` +
        `have the event\\. ${next}`,
    ),
    paused: /Not sent – Nothing is sent while the webhook is paused\./,
    deleted: /Not sent – Nothing more is sent, because the webhook was deleted\./,
    cancelled: /Not sent – Nothing more is sent, because the delivery was cancelled\./,
    trying: /Not yet – An attempt is under way, and its response is not recorded yet\./,
  };
  for (const [name, row] of Object.entries(rows))
    expect(text).toMatch(new RegExp(`${name}\\.example\\.com \\([0-9a-f]{6}\\) ${row.source}`));
  expect(text).not.toContain('token');
});

it('says when reads stopped, not when access is said to have ended, and leads to the entry of the log with its position', async () => {
  const t = await setupReceipt([]);
  expect(await t.read(`${t.path}/receipt`)).toContain('This access has not ended.');
  expect((await t.http(t.ada).get(t.path)).text).not.toContain('/receipt"');
  await t.end();
  const [row] = await t.query(
    `select to_char(stopped_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS') as stopped, entry_id as entry,
       to_char(now() at time zone 'UTC', 'YYYY-MM') as month from grant_end where grant_id = $1`,
    [t.grant.id],
  );
  expect((await t.http(t.ada).get(t.path)).text).toContain(`href="${t.path}/receipt"`);
  const before = await t.read(`${t.path}/receipt`);
  expect(before).toContain(`Shown as ended from ${row.stopped} UTC`);
  expect(before).toContain('No receiving system was registered for ends of access ( client.ended ).');
  expect(before).toContain('Not in the chain yet');
  const read = async () => {
    await t.query('select append_audit_chain(100000)');
    const { text } = await t.http(t.ada).get(`${t.path}/receipt`);
    expect(readText(text)).toMatch(
      new RegExp(`Stopped showing client access Position \\d+ of ${row.month} .* Hash [0-9a-f]{64} `),
    );
    expect(text).toContain(`href="/o/${t.orgId}/audit-log/${row.entry}"`);
  };
  await vi.waitFor(read, { timeout: 60_000, interval: 50 });
  // The role Billing sees no webhook's page and no log.
  const billing = await t.enrol({ orgId: t.orgId, roleKey: 'billing' });
  expect((await t.http(billing).get(`${t.path}/receipt`)).text).not.toMatch(/\/audit-log\/|\/webhooks\//);
});

it('has the acknowledgements of purged deliveries from the log', async () => {
  const t = await setupReceipt(['accepts', 'fails']);
  const eventId = await t.end();
  const startedAt = new Date('2026-11-01T12:00:00Z');
  for (const [name, status] of [
    ['accepts', 200],
    ['fails', 500],
  ] as const) {
    const webhook = t.hooks[name] ?? { id: '', orgId: '' };
    await t.make.attempt({ webhook, eventId, status, endsSchedule: status === 500, startedAt });
    await t.query(
      `update delivery set state = $2, run = 1, due_at = null, settled_at = now() - interval '100 days',
         created_at = now() - interval '100 days' where webhook_id = $1`,
      [webhook.id, status === 200 ? 'delivered' : 'exhausted'],
    );
  }
  const worker = await openAs(t.database.urls.worker, 1);
  await rollUpLedger(worker, { settledForSeconds: 0 });
  await worker.pool.query(purgeDeliveriesSql, [90, 100]);
  expect(await t.query('select from delivery where event_id = $1', [eventId])).toEqual([]);
  const text = await t.read(`${t.path}/receipt`);
  expect(text).toContain('1 of 2 receiving systems confirmed receipt of the notification ( client.ended ).');
  expect(text).toMatch(
    /accepts\.example\.com \(\w{6}\) Acknowledged 2026-11-01 12:00:00 UTC Recorded in the audit log/,
  );
  expect(text).toMatch(/fails\.example\.com \(\w{6}\) Not acknowledged – No further attempt\./);
  expect(text).toMatch(/Stopped showing client access .* Recorded confirmations of receipt /);
  const [entry] = await t.query(`select id from audit_entry where action = 'grant.notified' and organization_id = $1`, [
    t.orgId,
  ]);
  expect(await t.read(`/o/${t.orgId}/audit-log/${entry.id}`)).toContain(
    'System : Recorded that 1 of 2 webhooks acknowledged the end of Bo Lindqvist ’s access to the Rossi family .',
  );
});

it('of access that no read showed as active, says why there is none', async () => {
  const t = await setupReceipt([]);
  const professional = t.bo;
  const arrived = await t.make.grant({ professional, endsAt: new Date(), endReason: 'ended' });
  const withdrawn = await t.make.grant({ professional, since: new Date(Date.now() + 86_400_000) });
  const read = (id: string) => t.read(`/o/${t.orgId}/clients/${id}/receipt`);
  expect(await read(withdrawn.id)).toContain('This access has not begun.');
  await t.query(`update client_grant set status = 'withdrawn' where id = $1`, [withdrawn.id]);
  expect(await read(withdrawn.id)).toContain('withdrawn before it began');
  expect(await read(arrived.id)).toContain('had already ended when it was added here');
});

it('names who ended the access as far as the log knows, and no more', async () => {
  const t = await setupReceipt([]);
  const grant = (more: object = {}) => t.make.grant({ professional: t.bo, kind: 'neutral', ...more });
  const readEnd = async (id: string, who = t.ada) =>
    /Ended by (.*?) Shown as ended from/.exec(await t.read(`/o/${t.orgId}/clients/${id}/receipt`, who))?.[1];
  const path = `${t.path}/end`;
  expect(await t.http(t.ada).submit(path, path)).toMatchObject({ status: 303 });
  const [{ name }] = await t.query('select name from membership where person_id = $1', [t.ada.personId]);
  expect(await readEnd(t.grant.id)).toBe(`${name} , for the organization. Role today: Owner`);
  expect(await t.read(`${t.path}/receipt`)).toContain('Ended client access Not in the chain yet');
  const log = await t.read(`/o/${t.orgId}/audit-log`);
  expect(log).toContain('Ended Bo Lindqvist ’s access to the Rossi family');
  expect(log).toContain('Stopped showing Bo Lindqvist ’s access to the Rossi family as active in reads');
  const billing = await t.enrol({ orgId: t.orgId, permissions: ['org.seats.manage'] });
  expect(await readEnd(t.grant.id, billing)).toBe('A member of the organization');
  // The name is that of the time; the roles are those of now.
  await t.query(`update membership set name = 'Renamed' where person_id = $1`, [t.ada.personId]);
  expect(await readEnd(t.grant.id)).toBe(`${name} , for the organization. Role today: Owner`);

  const byPlatform = await grant();
  await t.query('select platform.end_grant($1, $2)', [t.orgId, byPlatform.id]);
  expect(await readEnd(byPlatform.id)).toContain('The platform on which the family gave the access. Who asked');
  expect(await t.read(`/o/${t.orgId}/clients/${byPlatform.id}/receipt`)).toContain('Kind of access Neutral');

  // Before the worker has stored it, and after.
  const planned = await grant();
  await t.query(`update client_grant set ends_at = now() + interval '50 milliseconds' where id = $1`, [planned.id]);
  const byClock = () =>
    expect.poll(() => readEnd(planned.id)).toBe('Its planned end. No person ended it at that time.');
  await byClock();
  await t.query(endDueGrantsSql);
  await byClock();

  const unknown = await grant();
  await t.query(endNow, [unknown.id]);
  expect(await readEnd(unknown.id)).toBe('Not known');
});
